package helm

import (
	"context"
	"errors"
	"testing"
)

func TestProblemsOfAComparison(t *testing.T) {
	problem := func(reason Reason, text string) error { return &Error{Reason: reason, Message: text} }

	for name, test := range map[string]struct {
		problems []error
		want     string
		reason   Reason
	}{
		"none": {},
		"one":  {[]error{problem(ReasonForbidden, "a")}, "a", ReasonForbidden},
		"many": {[]error{problem(ReasonFailed, "a"), problem(ReasonFailed, "b"), problem(ReasonFailed, "c"), problem(ReasonFailed, "d"),
			problem(ReasonUnreachable, "e")}, "a; b; c; and 2 more", ReasonUnreachable},
	} {
		var failure *Error

		err := summed(test.problems)
		if errors.As(err, &failure) != (test.want != "") || failure != nil && (failure.Message != test.want || failure.Reason != test.reason) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}

	for reason, want := range map[Reason]bool{ReasonFailed: false, ReasonForbidden: false, ReasonUnreachable: true, ReasonTimeout: true, ReasonInterrupted: true} {
		if got := endsComparison(t.Context(), problem(reason, "x")); got != want {
			t.Errorf("%s ends the comparison: %v, want %v", reason, got, want)
		}
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()

	if !endsComparison(ended, problem(ReasonFailed, "x")) {
		t.Error("a comparison that nobody waits for goes on")
	}
}
