package omnihelmrelease

import (
	"errors"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
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
		return loop.Stall(v1alpha1.ReasonForbidden, "%s; the user of the kubeconfig needs the rights to keep Helm's records (Secrets in namespace %s) and to make what the chart holds",
			failure.Message, s.release.Spec.Namespace)
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
