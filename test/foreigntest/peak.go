package foreigntest

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"time"
)

const (
	// samplePause is the time between two looks at the heap.
	samplePause = time.Millisecond
	// eagerGC keeps garbage below a tenth of what is in use.
	eagerGC = 10
	// nearLimit is how much of a limit may be in use before garbage is collected, in percent: the rest is for what is taken
	// meanwhile.
	nearLimit = 50
)

// PeakBytes returns about how many bytes of the heap a function has in use at most, beside what was in use before. It is
// for work in many small steps, which takes much in all and holds little: what is held for less than a millisecond may be
// missed. As with AllocatedBytes, the test must not be parallel. Garbage is collected all the time; WantPeak takes a tenth of
// the processor's time where the bound is known before.
func PeakBytes(t testing.TB, run func()) uint64 {
	t.Helper()

	defer debug.SetGCPercent(debug.SetGCPercent(eagerGC))

	runtime.GC()

	return peakWhile(run, inUse)
}

// WantPeak fails the test if a function holds more than limit bytes of the heap at once, beside what was in use before. As
// with PeakBytes, the test must not be parallel, and what is held for a moment only may be missed. What is held is what a
// collection of garbage finds, and one begins when all in use comes near the limit: whatever is left behind does not count.
func WantPeak(t testing.TB, limit uint64, run func()) {
	t.Helper()

	debug.FreeOSMemory()

	defer debug.SetMemoryLimit(debug.SetMemoryLimit(mapped() + int64(limit/100*nearLimit)))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))

	if got := peakWhile(run, live); got > limit {
		t.Errorf("held %d MiB of the heap, want at most %d", got>>20, limit>>20)
	}
}

// peakWhile returns by how much a figure of the heap grows at most while run runs.
func peakWhile(run func(), figure func() uint64) uint64 {
	var (
		before, peak = figure(), uint64(0)
		done         = make(chan struct{})
		sampling     sync.WaitGroup
	)

	sampling.Go(func() {
		for {
			peak = max(peak, figure())

			select {
			case <-done:
				return
			case <-time.After(samplePause):
			}
		}
	})

	func() {
		defer sampling.Wait()
		defer close(done) // also if run ends the test

		run()
	}()

	return max(peak, before) - before
}

// inUse is what the objects on the heap take, garbage included, in bytes.
func inUse() uint64 {
	return read("/memory/classes/heap/objects:bytes")
}

// live is what the last collection of garbage found in use, and what was taken while it looked, in bytes.
func live() uint64 {
	return read("/gc/heap/live:bytes")
}

// mapped is what debug.SetMemoryLimit counts, in bytes.
func mapped() int64 {
	return int64(read("/memory/classes/total:bytes") - read("/memory/classes/heap/released:bytes"))
}

func read(metric string) uint64 {
	sample := []metrics.Sample{{Name: metric}}
	metrics.Read(sample)

	return sample[0].Value.Uint64()
}
