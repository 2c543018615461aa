// Package interrupt lets a person interrupt what knows no context.
package interrupt

import "context"

// Call waits for a call until the context is done. What has not ended then is left to itself: the process is about to end.
func Call[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}

	ended := make(chan result, 1)

	go func() {
		value, err := call()
		ended <- result{value, err}
	}()

	select {
	case got := <-ended:
		return got.value, got.err
	case <-ctx.Done():
		var none T

		return none, context.Cause(ctx)
	}
}
