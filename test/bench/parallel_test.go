package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

func TestInParallel(t *testing.T) {
	var done [100]atomic.Int32

	if err := inParallel(t.Context(), 7, len(done), func(_ context.Context, worker, i int) error {
		if worker < 0 || worker >= 7 {
			t.Errorf("worker %d", worker)
		}

		done[i].Add(1)

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	for i := range done {
		if got := done[i].Load(); got != 1 {
			t.Errorf("%d was done %d times", i, got)
		}
	}
}

func TestInParallelEndsWithTheFirstError(t *testing.T) {
	want := errors.New("broken")

	var calls atomic.Int32

	err := inParallel(t.Context(), 2, 1000, func(context.Context, int, int) error {
		calls.Add(1)

		return want
	})
	if !errors.Is(err, want) || calls.Load() > 2 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
}
