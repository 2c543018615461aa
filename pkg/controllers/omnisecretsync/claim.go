package omnisecretsync

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
)

// action is what to do with the target.
type action int

const (
	actionNone    action = iota + 1 // it is as it has to be
	actionCreate                    // there is none
	actionUpdate                    // write over it
	actionReplace                   // delete it and make it again: its type or its data cannot be changed
	actionMark                      // it is as it has to be but for the hub in its mark
	actionRefuse                    // it is not ours
	actionKeep                      // it is this object's in another hub
	actionWait                      // it is being deleted
)

// claim has the facts that decide about the Secret in the workload cluster.
type claim struct {
	uid   string         // of the OmniSecretSync
	known bool           // it wrote this Secret before (status.target)
	adopt bool           // spec.adopt
	hubs  hubs.Hubs      // whose marks count as ours
	names string         // the object in which a user can name a previous hub, for messages
	from  types.UID      // of the source
	live  *corev1.Secret // nil if there is none
	want  content
}

// decide returns what to do, and for actionRefuse, actionKeep and actionWait the reason.
func (c claim) decide() (action, string) {
	if c.live == nil {
		return actionCreate, ""
	}

	if why := c.refused(); why != "" {
		return actionRefuse, why
	}

	if hub := c.live.Labels[labelHub]; carriesMark(c.live, c.uid) && !c.hubs.Ours(hub) {
		return actionKeep, fmt.Sprintf("Secret %s/%s in the workload cluster is read and not written: %s. %s",
			c.live.Namespace, c.live.Name, c.hubs.Differ(hub), hubs.Advice(hub, "Secret", c.names))
	}

	if c.live.DeletionTimestamp != nil {
		return actionWait, fmt.Sprintf("Secret %s/%s in the workload cluster is being deleted and is made again when it is gone; it is held by finalizers %s",
			c.live.Namespace, c.live.Name, redact.Line(fmt.Sprint(c.live.Finalizers)))
	}

	wanted := c.live.DeepCopy()
	c.want.fill(wanted)

	immutable := c.live.Immutable != nil && *c.live.Immutable
	sameData := apiequality.Semantic.DeepEqual(wanted.Data, c.live.Data)

	switch {
	case wanted.Type != c.live.Type, immutable && !sameData:
		return actionReplace, ""
	case sameData && apiequality.Semantic.DeepEqual(wanted.ObjectMeta, c.live.ObjectMeta):
		return actionNone, ""
	case sameData && c.lacksOnlyHub(wanted):
		return actionMark, ""
	default:
		return actionUpdate, ""
	}
}

// lacksOnlyHub reports whether our Secret differs from the wanted one only in its mark: the mark is from before marks
// named a hub, or from a hub that was taken over.
func (c claim) lacksOnlyHub(wanted *corev1.Secret) bool {
	if !carriesMark(c.live, c.uid) || c.live.Labels[labelHub] == wanted.Labels[labelHub] {
		return false
	}

	marked := c.live.DeepCopy()
	marked.Labels[labelHub] = wanted.Labels[labelHub]

	return apiequality.Semantic.DeepEqual(wanted.ObjectMeta, marked.ObjectMeta)
}

// refused returns why the Secret must not be changed; empty if it may be. A Secret that was ours and now carries
// another object's mark is never taken back: two objects must not overwrite each other in turns.
func (c claim) refused() string {
	mark := c.live.Labels[labelOwnerUID]

	switch {
	case c.from != "" && c.live.UID == c.from:
		return fmt.Sprintf("Secret %s/%s is the source itself (the workload cluster is this cluster); choose another spec.targetSecretRef",
			c.live.Namespace, c.live.Name)
	case isKubeconfig(c.live):
		return fmt.Sprintf("Secret %s/%s holds a kubeconfig that omni-controller uses or writes; choose another spec.targetSecretRef",
			c.live.Namespace, c.live.Name)
	case mark == c.uid:
		return ""
	case mark == "" && c.known && !c.adopt:
		return fmt.Sprintf("Secret %s/%s was written by this object, but its label %s was removed since; set the label to %s, delete that Secret, or set spec.adopt to overwrite it",
			c.live.Namespace, c.live.Name, labelOwnerUID, c.uid)
	case mark != "" && c.known:
		return fmt.Sprintf("Secret %s/%s now belongs to %s; it is not taken back", c.live.Namespace, c.live.Name, ownerOf(c.live))
	case c.adopt:
		return ""
	case mark != "":
		return fmt.Sprintf("Secret %s/%s belongs to %s; choose another spec.targetSecretRef, or set spec.adopt to take it over",
			c.live.Namespace, c.live.Name, ownerOf(c.live))
	case formerOwner(c.live) != "":
		return fmt.Sprintf("Secret %s/%s was written by %s of the operator with CRDs; choose another spec.targetSecretRef, or set spec.adopt to take it over",
			c.live.Namespace, c.live.Name, formerOwner(c.live))
	default:
		return fmt.Sprintf("Secret %s/%s exists and was not written by this object; choose another spec.targetSecretRef, or set spec.adopt to overwrite it",
			c.live.Namespace, c.live.Name)
	}
}

// isKubeconfig reports whether a Secret must not be overwritten even on request, because it leads to a cluster: the
// workload cluster can be this management cluster.
func isKubeconfig(live *corev1.Secret) bool {
	return live.Labels[v1alpha1.LabelExportUID] != "" || slices.Contains(live.Finalizers, v1alpha1.KubeconfigInUseFinalizer)
}

// difference returns the names of the parts of a Secret that differ from the desired content; empty if none does. It
// has no content.
func (c content) difference(live *corev1.Secret) string {
	wanted := live.DeepCopy()
	c.fill(wanted)

	var parts []string

	for _, part := range []struct {
		name string
		same bool
	}{
		{"type", wanted.Type == live.Type},
		{"data", apiequality.Semantic.DeepEqual(wanted.Data, live.Data)},
		{"labels", apiequality.Semantic.DeepEqual(wanted.Labels, live.Labels)},
		{"annotations", apiequality.Semantic.DeepEqual(wanted.Annotations, live.Annotations)},
	} {
		if !part.same {
			parts = append(parts, part.name)
		}
	}

	return strings.Join(parts, ", ")
}

// carriesMark reports whether a Secret carries the object's mark. The caller also has to check the hub in it.
func carriesMark(live *corev1.Secret, uid string) bool {
	return uid != "" && live.Labels[labelOwnerUID] == uid
}

// The labels that the operator with CRDs writes on a copy.
const (
	formerUID  = v1alpha1.GroupName + "/secret-sync-uid"
	formerName = v1alpha1.GroupName + "/secret-sync-name"
)

// formerOwner returns the name of the object of the operator with CRDs that wrote a Secret; empty if none did.
func formerOwner(live *corev1.Secret) string {
	uid := cmp.Or(live.Labels[formerUID], live.Annotations[formerUID])
	if uid == "" {
		return ""
	}

	return redact.Line(fmt.Sprintf("OmniSecretSync %q (UID %s)", cmp.Or(live.Labels[formerName], live.Annotations[formerName]), uid))
}

// ownerOf returns the name of the object in a mark, for messages.
func ownerOf(live *corev1.Secret) string {
	if live.Annotations[annotationOwner] == "" {
		return redact.Line(fmt.Sprintf("the OmniSecretSync with UID %s; its name was removed from the Secret, or it was never there", live.Labels[labelOwnerUID]))
	}

	return redact.Line(fmt.Sprintf("OmniSecretSync %s/%s (UID %s)",
		live.Annotations[annotationOwnerNS], live.Annotations[annotationOwner], live.Labels[labelOwnerUID]))
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// enqueueOtherClaimants enqueues, when an object is gone or has left a place in the workload cluster, those that want
// their Secret there: one of them may have waited for the owner, or lost its copy with it. The status forgets a place
// after the copy there is removed.
func (r *reconciler) enqueueOtherClaimants() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, wasSync := e.ObjectOld.(*v1alpha1.OmniSecretSync)
			after, isSync := e.ObjectNew.(*v1alpha1.OmniSecretSync)

			if wasSync && isSync {
				still := knownLocations(after)
				r.enqueueAt(ctx, before, slices.DeleteFunc(knownLocations(before), func(l location) bool { return slices.Contains(still, l) }), q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			if gone, isSync := e.Object.(*v1alpha1.OmniSecretSync); isSync {
				r.enqueueAt(ctx, gone, append(knownLocations(gone), wantedLocation(gone)), q)
			}
		},
	}
}

// enqueueAt enqueues the other objects of the cluster that want their Secret at one of the locations.
func (r *reconciler) enqueueAt(ctx context.Context, sync *v1alpha1.OmniSecretSync, left []location, q queue) {
	if len(left) == 0 {
		return
	}

	index.Each(ctx, r.client, &v1alpha1.OmniSecretSyncList{}, func(other *v1alpha1.OmniSecretSync) {
		if other.Name != sync.Name && slices.Contains(left, wantedLocation(other)) {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(other)})
		}
	}, client.InNamespace(sync.Namespace), client.MatchingFields{index.ByCluster: sync.Spec.ClusterRef.Name})
}
