package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
)

var errNotConfirmed = errors.New("nothing was done: it was not confirmed")

// these counts changes that were shown.
func these(number int) string {
	if number == 1 {
		return "this change"
	}

	return fmt.Sprintf("these %d changes", number)
}

// confirm asks a question; anything but yes is no, and so is an interruption.
func (t *tool) confirm(ctx context.Context, question string) error {
	if _, err := fmt.Fprintf(t.ErrOut, "%s [y/N]: ", question); err != nil {
		return err
	}

	answer, err := untilDone(ctx, func() (string, error) { return bufio.NewReader(t.In).ReadString('\n') })
	if answer = strings.ToLower(strings.TrimSpace(answer)); err != nil && answer == "" || answer != "y" && answer != "yes" {
		return errNotConfirmed
	}

	return nil
}

// untilDone waits for a call that knows no context until the context is done. A call that has not ended then is left to itself: the
// process is about to end.
func untilDone[T any](ctx context.Context, call func() (T, error)) (T, error) {
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
