package env

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// pollInterval is short because everything polled here is a local process.
const pollInterval = 50 * time.Millisecond

// giveUp marks an error of a check that more waiting cannot cure.
type giveUp struct{ error }

func (g giveUp) Unwrap() error { return g.error }

// GiveUp makes Eventually return at once with this error of a check.
func GiveUp(err error) error { return giveUp{err} }

// Eventually calls check again and again until it returns nil. An error of check is the
// state seen last: when timeout or ctx ends first, it is part of the returned error, together
// with what, which completes the sentence "wait for ...". Each call of check gets a context
// that ends with the whole wait.
func Eventually(ctx context.Context, timeout time.Duration, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()

	var last error

	for {
		err := check(ctx)
		if err == nil {
			return nil
		}

		var final giveUp
		if errors.As(err, &final) {
			return fmt.Errorf("wait for %s: %w", what, final.error)
		}

		// A check that was cut short says only "deadline exceeded"; the one before it knew more.
		if last == nil || ctx.Err() == nil {
			last = err
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; last state: %w", what, ctx.Err(), last)
		case <-ticker.C:
		}
	}
}

// eventuallyAlive is Eventually for the readiness of a child: it ends early, with the end of
// the log, if the child does.
func (p *process) eventuallyAlive(ctx context.Context, timeout time.Duration, what string, check func(context.Context) error) error {
	err := Eventually(ctx, timeout, what, func(ctx context.Context) error {
		if p.hasExited() {
			return giveUp{p.crash()}
		}

		return check(ctx)
	})
	if err != nil && !p.hasExited() {
		return fmt.Errorf("%w\nlog %s ends with:\n%s", err, p.spec.logPath, logTail(p.spec.logPath, 15))
	}

	return err
}
