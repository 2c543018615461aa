package helm

import (
	"context"
	"errors"
	"net/http"
	"testing"
)

// A controller that writes an object between the read and the dry run makes no difference.
func TestWriteDuringAComparison(t *testing.T) {
	r := newTried(t)
	r.want(ActionInstall, configMap("one"))

	writes := 0
	r.before = func(request *http.Request) {
		if request.Method != http.MethodPatch || request.URL.Query().Get("dryRun") == "" {
			return
		}

		if writes++; writes == 1 {
			written := r.get(configMapPath("one")).DeepCopy()
			written.SetAnnotations(map[string]string{"example.com/revision": "1", "meta.helm.sh/release-name": "demo", "meta.helm.sh/release-namespace": "apps"})
			r.put(configMapPath("one"), written.Object)
		}
	}

	if found, err := r.client.Drift(t.Context(), 1, nil); err != nil || len(found) > 0 || writes != 2 {
		t.Errorf("%v, %v, after %d comparisons", found, err, writes)
	}
}

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
