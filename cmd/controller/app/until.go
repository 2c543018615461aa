package app

import (
	"context"
	"errors"
	"time"
)

// until repeats a check until it succeeds, or waiting does not help (errRefused), or the context ends, and returns the last result.
// Before each pause, waits is called with the reason.
func until(ctx context.Context, pause time.Duration, check func(context.Context) error, waits func(reason error)) error {
	var reason error

	for {
		err := check(ctx)
		if err == nil || errors.Is(err, errRefused) {
			return err
		}

		// The end of the context cut this attempt short: its error says less than the one before.
		if reason == nil || ctx.Err() == nil {
			reason = err
		}

		waits(reason)

		select {
		case <-ctx.Done():
			return reason
		case <-time.After(pause):
		}
	}
}
