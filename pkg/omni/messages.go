package omni

import (
	"context"
	"fmt"
)

// Bounds of one message, in bytes, after decompression.
const (
	// maxAnswer is one message of the resource API, in bytes: one resource. Omni's
	// own storage takes less.
	maxAnswer = 4 << 20
	// streamWindow is how much of a stream may arrive before anybody reads it, in bytes.
	streamWindow = 64 << 10
)

// tooLong marks one message that is longer than its call accepts.
type tooLong struct{ limit int }

// Error implements error.
func (e *tooLong) Error() string {
	return fmt.Sprintf("one answer of Omni is longer than %d KiB", e.limit>>10)
}

// Is makes errors.Is(err, ErrTooMuchData) true.
func (e *tooLong) Is(target error) bool { return target == ErrTooMuchData }

// eventLimit is the key of a context that bounds each message of a watch, in bytes.
type eventLimit struct{}

// withEventLimit bounds each message of a watch, in bytes.
func withEventLimit(ctx context.Context, limit int) context.Context {
	return context.WithValue(ctx, eventLimit{}, limit)
}

// eventLimitOf is the bound that withEventLimit has set, if it has.
func eventLimitOf(ctx context.Context) (limit int, set bool) {
	limit, set = ctx.Value(eventLimit{}).(int)

	return limit, set
}
