package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"omni.texashpc.com/omni-cluster-operator/cmd/internal/interrupt"
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

	answer, err := interrupt.Call(ctx, func() (string, error) { return bufio.NewReader(t.In).ReadString('\n') })
	if answer = strings.ToLower(strings.TrimSpace(answer)); err != nil && answer == "" || answer != "y" && answer != "yes" {
		return errNotConfirmed
	}

	return nil
}
