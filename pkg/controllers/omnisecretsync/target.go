package omnisecretsync

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/redact"
)

// action is what to do to the target.
type action int

const (
	actionNone    action = iota + 1 // it is as it has to be
	actionCreate                    // there is none
	actionUpdate                    // write over it
	actionReplace                   // delete it and make it again: its type or its data cannot be changed
	actionRefuse                    // it is not ours
)

// target is what decides about the Secret in the workload cluster.
type target struct {
	uid   string         // of the OmniSecretSync
	known bool           // it wrote this Secret before (status.target)
	adopt bool           // spec.adopt
	live  *corev1.Secret // nil if there is none
	want  content
}

// decide says what to do, and for actionRefuse why.
func (t target) decide() (action, string) {
	if t.live == nil {
		return actionCreate, ""
	}

	if why := t.foreign(); why != "" {
		return actionRefuse, why
	}

	wanted := t.live.DeepCopy()
	t.want.fill(wanted)

	immutable := t.live.Immutable != nil && *t.live.Immutable
	sameData := apiequality.Semantic.DeepEqual(wanted.Data, t.live.Data)

	switch {
	case wanted.Type != t.live.Type, immutable && !sameData:
		return actionReplace, ""
	case sameData && apiequality.Semantic.DeepEqual(wanted.ObjectMeta, t.live.ObjectMeta):
		return actionNone, ""
	default:
		return actionUpdate, ""
	}
}

// foreign says why the Secret must not be touched; empty if it may be. One that
// was ours and carries another's mark now is never taken back: two objects must
// not take turns.
func (t target) foreign() string {
	mark := t.live.Labels[labelOwnerUID]

	switch {
	case mark == t.uid:
		return ""
	case mark != "" && t.known:
		return fmt.Sprintf("Secret %s/%s now belongs to %s; it is not taken back", t.live.Namespace, t.live.Name, ownerOf(t.live))
	case t.adopt:
		return ""
	case mark != "":
		return fmt.Sprintf("Secret %s/%s belongs to %s; choose another spec.targetSecretRef, or set spec.adopt to take it over",
			t.live.Namespace, t.live.Name, ownerOf(t.live))
	default:
		return fmt.Sprintf("Secret %s/%s exists and was not written by this object; choose another spec.targetSecretRef, or set spec.adopt to overwrite it",
			t.live.Namespace, t.live.Name)
	}
}

// ours tells whether a Secret may be deleted: only the mark counts.
func ours(live *corev1.Secret, uid string) bool {
	return uid != "" && live.Labels[labelOwnerUID] == uid
}

// ownerOf names the holder of a mark for people.
func ownerOf(live *corev1.Secret) string {
	return redact.Line(fmt.Sprintf("OmniSecretSync %s/%s (UID %s)",
		live.Annotations[annotationOwnerNS], live.Annotations[annotationOwner], live.Labels[labelOwnerUID]))
}
