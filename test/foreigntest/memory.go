// Package foreigntest measures what reading hostile input costs in memory, and makes such input.
package foreigntest

import (
	"runtime"
	"testing"
)

// AllocatedBytes returns how many bytes a function takes from the heap in all, whatever is given back meanwhile: it
// can never hold more than that. Everything that runs in the process at the same time counts, so the test and its
// package must not be parallel.
func AllocatedBytes(t testing.TB, run func()) uint64 {
	t.Helper()

	var before, after runtime.MemStats

	runtime.ReadMemStats(&before)
	run()
	runtime.ReadMemStats(&after)

	return after.TotalAlloc - before.TotalAlloc
}

// WantAllocated fails the test if a function takes more than limit bytes from the heap.
func WantAllocated(t testing.TB, limit uint64, run func()) {
	t.Helper()

	if got := AllocatedBytes(t, run); got > limit {
		t.Errorf("took %d MiB from the heap, want at most %d", got>>20, limit>>20)
	}
}

// LiveBytes returns how many bytes the objects on the heap take that are in use. As with AllocatedBytes, everything that runs
// in the process counts.
func LiveBytes() int64 {
	var stats runtime.MemStats

	runtime.GC()
	runtime.GC() // what a sync.Pool has is free after the second
	runtime.ReadMemStats(&stats)

	return int64(stats.HeapAlloc)
}
