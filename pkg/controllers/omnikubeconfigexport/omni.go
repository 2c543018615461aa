package omnikubeconfigexport

import (
	"context"
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session/opening"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/limiter"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// session returns the session that the controller of OmniConnection keeps.
func (r *reconciler) session(s *scope) (*session.Lease, loop.Outcome) {
	switch {
	case !s.cluster.DeletionTimestamp.IsZero():
		return nil, loop.Wait(0, v1alpha1.ReasonDeleting, "OmniCluster %q is being deleted: no new kubeconfig is issued", s.cluster.Name)
	case s.want.ClusterID == "":
		return nil, loop.Wait(0, v1alpha1.ReasonClusterNotInOmni, "OmniCluster %q has no cluster in Omni that it made or adopted; see its conditions", s.cluster.Name)
	case isReplaced(s.cluster):
		return nil, replaced(s)
	}

	lease, open := r.options.Pool.Get(string(s.connection.UID))
	if !open {
		outcome := loop.Wait(callPause, v1alpha1.ReasonConnectionNotReady, "OmniConnection %q is not connected to Omni; see its conditions", s.connection.Name)

		return nil, opening.Unless(r.options.Pool, s.connection, r.started, r.options.Now(), outcome)
	}

	if outcome := opening.Endpoint(lease, s.connection); !outcome.Continues() {
		lease.Release()

		return nil, outcome
	}

	return lease, loop.Proceed()
}

// enter takes one of the slots of the connection, until release is called. Without a slot the run ends, and the status
// stays, because nothing is wrong.
func (r *reconciler) enter(s *scope) (release func(), outcome loop.Outcome) {
	name := client.ObjectKeyFromObject(s.export)

	release, ok := r.slots.TryAcquire(s.connection.UID, 1, limiter.Waiter{Name: name.String(), Wake: func() { r.wake.Fire(name) }})
	if !ok {
		return nil, loop.Postpone(limiter.Jitter(limiter.WakePause), v1alpha1.ReasonProgressing, "other exports of OmniConnection %q come first", s.connection.Name)
	}

	return release, loop.Proceed()
}

// checkCluster makes sure, before a token is signed, that the cluster in Omni still belongs to the OmniCluster: naming
// somebody else's cluster must not give access to it.
func checkCluster(ctx context.Context, lease *session.Lease, s *scope) loop.Outcome {
	live, err := lease.InspectLive(ctx, s.want.ClusterName)
	if err != nil {
		return explain(omni.Classify(err), s, omni.Message(err))
	}

	switch {
	case !live.Exists:
		return loop.Wait(callPause, v1alpha1.ReasonClusterNotInOmni, "Omni has no cluster %q", s.want.ClusterName)
	case live.Marks.UID != string(s.cluster.UID):
		return loop.Stall(v1alpha1.ReasonNotOwned, "cluster %q in Omni does not belong to OmniCluster %q: no kubeconfig is issued for it",
			s.want.ClusterName, s.cluster.Name)
	case !s.hubs.Ours(live.Marks.Hub):
		return loop.Stall(v1alpha1.ReasonOwnedByOtherHub, "cluster %q in Omni belongs to OmniCluster %q of another hub, %s: no kubeconfig is issued for it here. "+
			"See the condition Stalled of the OmniCluster", s.want.ClusterName, s.cluster.Name, omni.Sanitize(live.Marks.Hub))
	case live.UUID != s.want.ClusterID && apimeta.IsStatusConditionTrue(s.cluster.Status.Conditions, v1alpha1.ConditionStalled):
		return replaced(s)
	case live.UUID != s.want.ClusterID:
		return loop.Wait(callPause, v1alpha1.ReasonRemoteClusterReplaced, "cluster %q in Omni has another ID than OmniCluster %q knows; waits for its status",
			s.want.ClusterName, s.cluster.Name)
	}

	return loop.Proceed()
}

// isReplaced reports whether the OmniCluster waits for a person because the cluster in Omni is not the one that it made. A
// suspended one says so only of its plan.
func isReplaced(cluster *v1alpha1.OmniCluster) bool {
	return slices.ContainsFunc(cluster.Status.Conditions, func(c metav1.Condition) bool {
		return c.Reason == v1alpha1.ReasonRemoteClusterReplaced &&
			(c.Type == v1alpha1.ConditionStalled && c.Status == metav1.ConditionTrue || c.Type == v1alpha1.ConditionPlanned && c.Status == metav1.ConditionFalse)
	})
}

// replaced is the outcome for a cluster whose ID in Omni is not the one that the OmniCluster knows: a person has to decide what
// becomes of the OmniCluster. A change of its status wakes the export.
func replaced(s *scope) loop.Outcome {
	return loop.Stall(v1alpha1.ReasonRemoteClusterReplaced, "cluster %q in Omni has another ID than OmniCluster %q knows: no kubeconfig is issued for it. "+
		"See the conditions of the OmniCluster", s.want.ClusterName, s.cluster.Name)
}

// explain converts the class of a failure into the outcome for the user.
func explain(class omni.Class, s *scope, message string) loop.Outcome {
	message = fmt.Sprintf("OmniConnection %q: %s", s.connection.Name, message)

	stalled := map[omni.Class]string{ // the rest heals by itself
		omni.ClassDenied: v1alpha1.ReasonPermissionDenied, omni.ClassUnauthenticated: v1alpha1.ReasonUnauthenticated,
		omni.ClassKeyExpired: v1alpha1.ReasonKeyExpired, omni.ClassKeyInvalid: v1alpha1.ReasonKeyInvalid,
		omni.ClassTooMuchData: v1alpha1.ReasonTooMuchData, omni.ClassRefused: v1alpha1.ReasonRefused, omni.ClassTLS: v1alpha1.ReasonTLSFailed,
	}

	switch reason := stalled[class]; {
	case reason != "":
		return loop.Stall(reason, "%s", message)
	case class == omni.ClassNotReady, class == omni.ClassGone:
		return loop.Wait(time.Second, v1alpha1.ReasonClusterNotInOmni, "%s", message)
	default:
		return loop.Wait(callPause, v1alpha1.ReasonUnreachable, "%s", message)
	}
}
