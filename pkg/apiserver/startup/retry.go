package startup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"
)

const (
	// askPause is the pause between two attempts to reach a server that does not answer yet.
	askPause = 2 * time.Second
	// tellPause is how often the log repeats what the start waits for.
	tellPause = 15 * time.Second
)

// permanentError is an error that waiting does not remedy.
type permanentError struct{ error }

// Unwrap returns the error itself.
func (p permanentError) Unwrap() error { return p.error }

// retry calls a check until it succeeds, its error is permanent, or the context ends, and logs what it waits for.
// Servers of one installation start in any order. After a power cut kubelet starts all of them at once; it would
// restart a process that exits because another server is missing with longer and longer delays.
func retry(ctx context.Context, what string, check func(context.Context) error) error {
	var told time.Time

	for {
		err := check(ctx)
		if err == nil || errors.As(err, &permanentError{}) {
			return err
		}

		if ctx.Err() == nil && (told.IsZero() || time.Since(told) >= tellPause) {
			told = time.Now()

			klog.InfoS("Waiting for "+what, "reason", err.Error())
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w: %w", what, context.Cause(ctx), err)
		case <-time.After(askPause):
		}
	}
}
