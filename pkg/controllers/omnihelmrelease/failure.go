package omnihelmrelease

import (
	"context"
	"errors"
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// clusterPause is how long to wait before a workload cluster that failed is tried again.
const clusterPause = 15 * time.Second

// explainCluster returns the outcome for a call to the workload cluster that failed.
func (r *reconciler) explainCluster(s *scope, err error) loop.Outcome {
	var failure *helm.Error
	if !errors.As(err, &failure) {
		return loop.Wait(clusterPause, v1alpha1.ReasonError, "%s", err.Error())
	}

	switch failure.Reason {
	case helm.ReasonForbidden:
		return clusteraccess.Forbidden(s.release, fmt.Sprintf("%s; the user of the kubeconfig needs the rights to keep Helm's records (Secrets in namespace %s) and to make what the chart holds",
			failure.Message, s.release.Spec.Namespace))
	case helm.ReasonRecord:
		return loop.Stall(v1alpha1.ReasonRecordUnreadable, "%s", failure.Message)
	case helm.ReasonUnreachable, helm.ReasonTimeout, helm.ReasonInterrupted:
		if s.opened != nil && s.opened.Cluster != nil {
			s.opened.Cluster.Invalidate()
		}

		return loop.Wait(clusterPause, v1alpha1.ReasonClusterUnreachable, "%s", failure.Message)
	default:
		return loop.Wait(clusterPause, v1alpha1.ReasonError, "%s", failure.Message)
	}
}

// failureReason returns the condition reason for a failed action.
func failureReason(err error) string {
	var failure *helm.Error

	switch {
	case !errors.As(err, &failure):
		return v1alpha1.ReasonActionFailed
	case failure.Reason == helm.ReasonForbidden:
		return v1alpha1.ReasonForbidden
	case failure.Reason == helm.ReasonUnreachable:
		return v1alpha1.ReasonClusterUnreachable
	case failure.Reason == helm.ReasonUnavailable:
		return v1alpha1.ReasonError
	case failure.Reason == helm.ReasonRecord:
		return v1alpha1.ReasonRecordUnreadable
	default:
		return v1alpha1.ReasonActionFailed
	}
}

func interrupted(err error) bool {
	var failure *helm.Error

	return errors.As(err, &failure) && failure.Reason == helm.ReasonInterrupted
}

// redactSecrets removes values of Secrets from an error: a server that refuses an object repeats it in its message.
func redactSecrets(err error, merged values.Values) error {
	var failure *helm.Error
	if !errors.As(err, &failure) {
		return err
	}

	return &helm.Error{Reason: failure.Reason, Message: merged.Redact(failure.Message), Still: failure.Still}
}

// redactAgain does the same for what waited for its turn, and held no values while it did. Without them the message is
// not shown.
func (r *reconciler) redactAgain(err error, from basis) error {
	var failure *helm.Error
	if !errors.As(err, &failure) {
		return err
	}

	shown := error(&helm.Error{
		Reason: failure.Reason, Message: "the message is not shown: it may repeat values, which could not be read again", Still: failure.Still,
	})

	_ = r.withValues(from, func(merged values.Values) { shown = redactSecrets(err, merged) })

	return shown
}

// The pauses before a failed action is tried again double from the first to the longest.
const (
	firstRetryPause   = 15 * time.Second
	longestRetryPause = 5 * time.Minute
)

// retryPause returns how long to wait after this many failures.
func retryPause(failures int) time.Duration {
	return limiter.BackoffAfter(failures, firstRetryPause, longestRetryPause)
}

// notBefore returns when an action may begin. A failed action is tried again after a pause. A rollback, and an action
// that unlocks a release, follows the failure at once. The failures of the attempt neither delay nor bound a Resume, which
// makes an interrupted revision again: it waits only if the last action that this process saw pauses.
func notBefore(release *v1alpha1.OmniHelmRelease, last job, decision helm.Decision, now time.Time) time.Time {
	ended, failures := last.ended, 0

	// An end in the future is one by the clock of a process before that was ahead.
	if noted := release.Status.LastActionTime; ended.IsZero() && noted != nil && !noted.After(now) {
		ended = noted.Time
	}

	if (decision.Action == helm.ActionInstall || decision.Action == helm.ActionUpgrade) && decision.Resume == 0 {
		failures = decision.Failures
	}

	if last.action == decision.Action && last.pauses() {
		failures = max(failures, last.failedInRow)
	}

	if failures == 0 {
		return time.Time{}
	}

	return ended.Add(retryPause(failures))
}

// refusal returns why the chart is not rendered again with the same values and settings; empty if it may be. It is in
// the status, so that it survives a restart of the controller.
func refusal(s *scope) string {
	var failure *helm.Error
	if s.last.attempt == s.want.Attempt && errors.As(s.last.err, &failure) && failure.Reason == helm.ReasonRefused {
		return fmt.Sprintf("%s. It is not rendered again, and what is deployed stays as it is, until the chart, the values or the spec change, "+
			"or the annotation %s gets a new value", failure.Message, v1alpha1.AnnotationReconcileRequestedAt)
	}

	told := apimeta.FindStatusCondition(s.release.Status.Conditions, v1alpha1.ConditionReleased)
	if s.last.begun.IsZero() && s.release.Status.LastAttemptedDigest == s.want.Attempt && told != nil && told.Reason == v1alpha1.ReasonChartRefused {
		return told.Message
	}

	return ""
}

// failureOf returns what failed.
func failureOf(s *scope) string {
	if s.last.err != nil {
		return s.last.err.Error()
	}

	return fmt.Sprintf("%d attempts failed", s.decision.Failures)
}

// exhausted returns what to do when every attempt was used.
func (r *reconciler) exhausted(ctx context.Context, s *scope) string {
	said := ""

	if s.last.err != nil {
		said = s.last.err.Error()
	} else if failed := lastFailed(s.observed, s.want.Attempt); failed != nil {
		if found, err := details(ctx, s, failed.Number); err == nil {
			said = fmt.Sprintf("revision %d: %s", failed.Number, s.values.Redact(found.Description))
		}
	}

	return fmt.Sprintf("%s, no more are made (spec.retries is %d). The last: %s. Change the spec, the values or the chart, or set the annotation %s to a new value",
		s.decision.Why, s.want.Retries, said, v1alpha1.AnnotationReconcileRequestedAt)
}

func lastFailed(observed *helm.Observed, attempt string) *helm.Revision {
	for i := range observed.Revisions {
		if r := &observed.Revisions[i]; r.Status == helm.StatusFailed && r.Attempt == attempt {
			return r
		}
	}

	return nil
}
