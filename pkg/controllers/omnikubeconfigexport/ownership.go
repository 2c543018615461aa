package omnikubeconfigexport

import (
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
)

// ownership is the kind of owner of a Secret.
type ownership int

const (
	absent ownership = iota
	ours
	// others means another export, or an unknown owner.
	others
	// otherHubs means this same export in another hub.
	otherHubs
)

// last is what the status records as written.
type last struct {
	target types.NamespacedName
	hash   string
}

func lastOf(export *v1alpha1.OmniKubeconfigExport) last {
	return last{target: export.WrittenTarget(), hash: export.Status.KubeconfigHash}
}

// judgeOwner decides to whom the target belongs, by its mark. If the label was removed, the content is the proof:
// nobody else has that kubeconfig.
func judgeOwner(secret *corev1.Secret, uid types.UID, of shape, written last, accepted hubs.Hubs) ownership {
	if secret == nil {
		return absent
	}

	other := !accepted.Ours(secret.Labels[v1alpha1.MarkHub])

	switch {
	case carriesMark(secret, uid, written.target) && other:
		return otherHubs
	case carriesMark(secret, uid, written.target):
		return ours
	case !other && secret.Labels[v1alpha1.LabelExportUID] == "" && written.hash != "" && written.target == keyOf(secret) && of.hash(secret.Data) == written.hash:
		return ours
	default:
		return others
	}
}

// carriesMark reports whether a Secret carries the mark of an export and is no copy: a copy under another name has the label
// as well. The status (written; empty if nothing was) counts like the annotation, which can be lost. The caller also has to
// check the hub in the mark.
func carriesMark(secret metav1.Object, uid types.UID, written types.NamespacedName) bool {
	if uid == "" || secret.GetLabels()[v1alpha1.LabelExportUID] != string(uid) {
		return false
	}

	as := secret.GetAnnotations()[v1alpha1.AnnotationExportSecret]

	return as == keyOf(secret).String() || written == keyOf(secret) || as == "" && written.Name == ""
}

func keyOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// lacksOnlyMarks reports whether an existing Secret differs from the wanted one only in its marks: it was written
// before a mark named the hub or the cluster, or by a hub that was taken over.
func lacksOnlyMarks(has, want *corev1.Secret) bool {
	if has == nil || has.Labels[v1alpha1.LabelExportUID] == "" {
		return false
	}

	completed := has.DeepCopy()

	for _, label := range []string{v1alpha1.MarkHub, v1alpha1.LabelCluster} {
		if value, ok := want.Labels[label]; ok {
			completed.Labels[label] = value
		}
	}

	return !apiequality.Semantic.DeepEqual(has, want) && apiequality.Semantic.DeepEqual(completed, want)
}
