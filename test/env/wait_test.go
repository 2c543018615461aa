package env

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestEventually(t *testing.T) {
	t.Run("succeeds at the third call", func(t *testing.T) {
		calls := 0
		err := Eventually(t.Context(), time.Minute, "three", func(context.Context) error {
			if calls++; calls < 3 {
				return errors.New("not yet")
			}

			return nil
		})

		if err != nil || calls != 3 {
			t.Errorf("got %v after %d calls", err, calls)
		}
	})

	t.Run("shows the last state", func(t *testing.T) {
		err := Eventually(t.Context(), 120*time.Millisecond, "the cluster to be ready", func(context.Context) error {
			return errors.New("two of three machines")
		})

		const want = "wait for the cluster to be ready: context deadline exceeded; last state: two of three machines"
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}

		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error("the error is not DeadlineExceeded")
		}
	})

	t.Run("keeps the state from before a look that was cut short", func(t *testing.T) {
		first := true
		err := Eventually(t.Context(), 120*time.Millisecond, "x", func(ctx context.Context) error {
			if first {
				first = false

				return errors.New("two of three machines")
			}

			<-ctx.Done()

			return ctx.Err()
		})

		const want = "wait for x: context deadline exceeded; last state: two of three machines"
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	})

	t.Run("ends early", func(t *testing.T) {
		start := time.Now()
		err := Eventually(t.Context(), time.Minute, "x", func(context.Context) error { return giveUp{errors.New("crashed")} })

		if err == nil || err.Error() != "wait for x: crashed" || time.Since(start) > 10*time.Second {
			t.Errorf("got %v after %s", err, time.Since(start))
		}
	})

	t.Run("ends with its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()

		err := Eventually(ctx, time.Minute, "x", func(context.Context) error { return errors.New("no") })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want canceled", err)
		}
	})
}
