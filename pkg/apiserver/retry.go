package apiserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"
)

const (
	// askPause is the pause between two looks at a server that does not answer yet.
	askPause = 2 * time.Second
	// tellPause is how often a start that waits says so.
	tellPause = 15 * time.Second
)

// permanentError is one that waiting does not help against.
type permanentError struct{ error }

// Unwrap returns the error itself.
func (p permanentError) Unwrap() error { return p.error }

// retry looks until what is waited for is there, the error is permanent, or the context ends, and says what it waits
// for. Servers of one installation start in any order: after a power cut kubelet starts all at once, and one that ended
// because another was not there yet would be held back longer with each try.
func retry(ctx context.Context, what string, look func(context.Context) error) error {
	var told time.Time

	for {
		err := look(ctx)
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
