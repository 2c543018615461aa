package omnicluster

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
)

// announceStatus sends the events about what is new in the status, once it is stored.
func (r *reconciler) announceStatus(before, after *v1alpha1.OmniCluster) {
	r.announceMove(before, after)
	r.announceTurn(after, before.Status.Rollout, after.Status.Rollout)
}

// announceMove sends the event that the cluster is looked for at another endpoint from now on. Nothing tells an Omni that has moved from
// a copy of it, in which the cluster has the same mark and ID, so a person has to know.
func (r *reconciler) announceMove(before, after *v1alpha1.OmniCluster) {
	from, to := before.Status.Endpoint, after.Status.Endpoint
	if !consent.Moved(from, to) {
		return
	}

	recognised := "its mark and its ID"
	if before.Status.OmniClusterID == "" {
		recognised = "its mark"
	}

	connection := &corev1.ObjectReference{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "OmniConnection", Namespace: after.Namespace, Name: after.Spec.ConnectionRef.Name,
		FieldPath: from + " -> " + to, // the recorder would take the way back for the same event
	}
	r.events.Eventf(after, connection, corev1.EventTypeWarning, "EndpointMoved", "Connect",
		"cluster %q is looked for at %s from now on, before at %s: it was recognised by %s, which a copy of that Omni has, too",
		after.Status.ClusterName, to, from, recognised)
}

// announceTurn sends the events about the cluster's turn, and counts what began out of turn.
func (r *reconciler) announceTurn(cluster *v1alpha1.OmniCluster, before, after *v1alpha1.OmniClusterRollout) {
	was, is := stateOf(before), stateOf(after)
	if after == nil {
		return
	}

	if failure := after.Failure; failure != nil && (before == nil || before.Failure == nil || !before.Failure.Time.Equal(&failure.Time)) {
		r.events.Eventf(cluster, nil, corev1.EventTypeWarning, "RolloutFailed", "Rollout", "%s", failure.Message)
	}

	if was == is && (before == nil || before.Hash == after.Hash) {
		return
	}

	switch is {
	case v1alpha1.RolloutHeld:
		if was != is {
			r.events.Eventf(cluster, nil, corev1.EventTypeNormal, "Held", "Rollout", "changes wait for their turn: %s", after.Reason)
		}
	case v1alpha1.RolloutAdmitted:
		reason, note := "Admitted", "changes may begin"
		if consent.IsOverridden(cluster, after.Override, after.Hash) {
			reason, note = "RolloutOverridden", "changes begin out of turn: "+overrideText(after)
			r.options.Overrides.CountOverride(types.NamespacedName{Namespace: cluster.Namespace, Name: after.Policy})
		}

		r.events.Eventf(cluster, nil, corev1.EventTypeNormal, reason, "Rollout", "%s", note)
	case v1alpha1.RolloutFailed:
	}
}

func overrideText(status *v1alpha1.OmniClusterRollout) string {
	if status.Override == nil {
		return "by the annotation " + v1alpha1.AnnotationRolloutOverride
	}

	return status.Override.User + ": " + status.Override.Reason
}
