package apiserver_test

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"time"
)

// peakHeap is how many bytes more than before were on the heap at the same time while the work ran. Garbage is collected
// early meanwhile, so that it is about what is in use.
func peakHeap(t *testing.T, work func()) uint64 {
	t.Helper()

	const heap = "/memory/classes/heap/objects:bytes"

	read := func() uint64 {
		sample := []metrics.Sample{{Name: heap}}
		metrics.Read(sample)

		return sample[0].Value.Uint64()
	}

	defer debug.SetGCPercent(debug.SetGCPercent(10))

	runtime.GC()

	before, peak := read(), uint64(0)
	done := make(chan struct{})

	var sampling sync.WaitGroup

	sampling.Go(func() {
		for {
			peak = max(peak, read())

			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})

	work()
	close(done)
	sampling.Wait()

	return peak - min(before, peak)
}
