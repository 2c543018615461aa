package startup

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestRetry(t *testing.T) {
	refused, given := errors.New("connection refused"), errors.New("gave up after 1m0s")
	missing := errors.New("a right is missing")

	for _, tc := range []struct {
		name   string
		answer func(after time.Duration) error
		after  time.Duration
		want   string
	}{
		{"there", func(time.Duration) error { return nil }, 0, ""},
		{"there later", func(after time.Duration) error {
			if after < 5*time.Second {
				return refused
			}

			return nil
		}, 6 * time.Second, ""},
		{"permanent", func(after time.Duration) error {
			if after < 3*time.Second {
				return refused
			}

			return permanentError{missing}
		}, 4 * time.Second, "a right is missing"},
		{"never", func(time.Duration) error { return refused }, time.Minute, "wait for the hub: gave up after 1m0s: connection refused"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()

				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, given)
				defer cancel()

				err := retry(ctx, "the hub", func(context.Context) error { return tc.answer(time.Since(begin)) })
				if (err == nil) != (tc.want == "") || err != nil && err.Error() != tc.want {
					t.Errorf("got %v, want %q", err, tc.want)
				}

				if got := time.Since(begin); got != tc.after {
					t.Errorf("after %s, want %s", got, tc.after)
				}
			})
		})
	}
}

// A stop ends the wait at once, and can be told from a failure.
func TestRetryStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)

		err := retry(ctx, "etcd", func(context.Context) error { return errors.New("no answer") })
		if !errors.Is(err, context.Canceled) || time.Since(begin) != time.Second {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
	})
}
