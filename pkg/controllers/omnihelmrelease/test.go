package omnihelmrelease

import (
	"context"
	"fmt"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// test runs the chart's tests, once for each revision.
func (r *reconciler) test(_ context.Context, s *scope) (loop.Outcome, error) {
	if !s.release.Spec.Test.Enable {
		return loop.Skip(v1alpha1.ReasonDisabled, "spec.test.enable is not set"), nil
	}

	if s.decision.Action == helm.ActionTest {
		if testsAreVain(s) {
			return testsFailed(s, failureReason(s.last.err), fmt.Sprintf("the result of the tests cannot be noted: %s. They run again with the next "+
				"revision, or when the annotation %s gets a new value", s.last.err, v1alpha1.AnnotationReconcileRequestedAt)), nil
		}

		if at := notBefore(s.release, s.last, s.decision, r.options.Now()); at.After(r.options.Now()) {
			return loop.Wait(at.Sub(r.options.Now()), failureReason(s.last.err), "%s", s.last.err), nil
		}

		return r.begin(s, helm.ActionTest, r.action(s)), nil
	}

	if s.latest().Tested == helm.TestsPassed {
		return loop.Continue(v1alpha1.ReasonTestsPassed, "%s; its tests passed", deployed(s)), nil
	}

	said := "a test failed"
	if s.last.action == helm.ActionTest && s.last.err != nil {
		said = s.last.err.Error()
	}

	return testsFailed(s, v1alpha1.ReasonTestsFailed, said+". The tests run again with the next revision"), nil
}

// testsFailed returns the outcome for failed tests, as far as they count.
func testsFailed(s *scope, reason, said string) loop.Outcome {
	if s.release.Spec.Test.IgnoreFailures {
		return loop.Note(reason, "%s; %s (spec.test.ignoreFailures is set)", deployed(s), said)
	}

	return loop.Stall(reason, "%s; %s", deployed(s), said)
}

// testsAreVain reports whether the tests were run as often as an action is tried, and no result could be recorded. A
// cluster that cannot be reached is waited for.
func testsAreVain(s *scope) bool {
	return s.last.action == helm.ActionTest && s.last.attempt == s.want.Attempt && s.last.failed() && s.last.failedInRow > s.want.Retries &&
		!interrupted(s.last.err) && failureReason(s.last.err) != v1alpha1.ReasonClusterUnreachable
}
