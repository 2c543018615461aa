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
)

// PeakBytes returns about how many bytes of the heap a function has in use at most, beside what was in use before. It is
// for work in many small steps, which takes much in all and holds little: what is held for less than a millisecond may be
// missed. As with AllocatedBytes, the test must not be parallel.
func PeakBytes(t testing.TB, run func()) uint64 {
	t.Helper()

	defer debug.SetGCPercent(debug.SetGCPercent(eagerGC))

	runtime.GC()

	var (
		before, peak = inUse(), uint64(0)
		done         = make(chan struct{})
		sampling     sync.WaitGroup
	)

	sampling.Go(func() {
		for {
			peak = max(peak, inUse())

			select {
			case <-done:
				return
			case <-time.After(samplePause):
			}
		}
	})

	run()
	close(done)
	sampling.Wait()

	return max(peak, before) - before
}

// inUse is what the objects on the heap take, garbage included, in bytes.
func inUse() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)

	return sample[0].Value.Uint64()
}
