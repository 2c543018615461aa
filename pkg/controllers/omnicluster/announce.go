package omnicluster

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// maxAnnounced is how many changes of one apply get an event each.
const maxAnnounced = 20

// announcement is the event of one change that Omni took.
type announcement struct {
	reason, action, note string
	// related is the resource in Omni, with the change of its size. The recorder merges events that differ in their
	// note only, and would show the first note for all of them.
	related *corev1.ObjectReference
}

// announce sends one event for each change that Omni took, up to a limit, and one more event that counts the others.
// The run that makes a change announces it, so no change is announced twice. corrected is true if Omni had everything
// that the documents say before: then somebody else had changed what the run changed back.
func (r *reconciler) announce(cluster *v1alpha1.OmniCluster, taken []plan.Change, corrected bool) {
	for _, change := range taken[:min(maxAnnounced, len(taken))] {
		said := announcementOf(change)
		if corrected {
			said = said.corrects(change)
		}

		r.events.Eventf(cluster, said.related, corev1.EventTypeNormal, said.reason, said.action, "%s", said.note)
	}

	if rest := len(taken) - maxAnnounced; rest > 0 {
		r.events.Eventf(cluster, nil, corev1.EventTypeNormal, "Applied", "Apply", "%s in Omni", omni.Plural(rest, "more change"))
	}
}

// announceAdoption sends the event that an existing cluster got this object's mark.
func (r *reconciler) announceAdoption(cluster *v1alpha1.OmniCluster, decision consent.Decision) {
	claim := decision.Claim()

	text := claim.Takeover()
	if text == "" || !slices.ContainsFunc(decision.Done(), func(change plan.Change) bool { return change.Type == plan.TypeCluster }) {
		return
	}

	reason, action := "Adopted", "Adopt"
	if claim.FromPreviousHub() {
		reason, action = "TakenOver", "TakeOver"
	}

	r.events.Eventf(cluster, nil, corev1.EventTypeNormal, reason, action, "%s", strings.TrimPrefix(text, "; "))
}

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

// corrects returns the announcement of a change that reverts somebody else's.
func (a announcement) corrects(change plan.Change) announcement {
	a.action = "Correct"

	switch change.Action {
	case plan.ActionCreate:
		a.reason, a.note = "Corrected", a.note+"; it was removed in Omni, and is there again as the documents say"
	case plan.ActionUpdate:
		a.reason, a.note = "Corrected", a.note+"; it was changed in Omni, and is again as the documents say"
	case plan.ActionDestroy:
		a.note += "; it was made in Omni, and the documents do not have it"
	}

	return a
}

func announcementOf(change plan.Change) announcement {
	kind := omni.KindOf(change.Type)
	said := announcement{related: &corev1.ObjectReference{APIVersion: "omni.sidero.dev", Kind: kind, Name: change.ID}}

	switch change.Action {
	case plan.ActionCreate:
		said.reason, said.action, said.note = "Created", "Create", "created in Omni: "
	case plan.ActionUpdate:
		said.reason, said.action, said.note = "Updated", "Update", "updated in Omni: "
	case plan.ActionDestroy:
		said.reason, said.action, said.note = "Destroyed", "Destroy", "destruction requested in Omni: "
	}

	said.note += strings.TrimPrefix(change.String(), string(change.Action)+" ")

	if change.OldSize != change.NewSize {
		said.related.FieldPath = "size: " + change.OldSize + " -> " + change.NewSize
	}

	if change.Destructive {
		said.note += "; destructive: " + change.Reason
	}

	return said
}
