package omnikubeconfigexport

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
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

// judgeOwner decides to whom the target belongs, by its mark. If the label was removed, the content is the proof:
// nobody else has that kubeconfig.
func judgeOwner(secret *corev1.Secret, export *v1alpha1.OmniKubeconfigExport, of shape, accepted hubs.Hubs) ownership {
	if secret == nil {
		return absent
	}

	mark, hash := secret.Labels[v1alpha1.LabelExportUID], export.Status.KubeconfigHash
	other := !accepted.Ours(secret.Labels[v1alpha1.MarkHub])

	switch {
	case carriesMark(secret, export) && other:
		return otherHubs
	case carriesMark(secret, export):
		return ours
	case !other && mark == "" && hash != "" && export.WrittenTarget() == keyOf(secret) && of.hash(secret.Data) == hash:
		return ours
	default:
		return others
	}
}

// judgeTarget reports whether a kubeconfig could be stored.
func (r *reconciler) judgeTarget(ctx context.Context, owner ownership, s *scope) (loop.Outcome, error) {
	name := shownTarget(s.export, s.export.EffectiveTarget())

	switch {
	case owner == otherHubs:
		hub := s.secret.Labels[v1alpha1.MarkHub]

		return loop.Stall(v1alpha1.ReasonOwnedByOtherHub, "Secret %q is not written: %s. %s", name, s.hubs.Differ(hub), hubs.Advice(hub, "Secret", fmt.Sprintf("OmniConnection %q", s.connection.Name))), nil
	case owner == others:
		return r.judgeOthers(ctx, s)
	case owner == ours && !s.secret.DeletionTimestamp.IsZero():
		return targetDeleting(name, s.secret), nil
	}

	return loop.Proceed(), nil
}

// judgeOthers decides whether another's Secret is adopted.
func (r *reconciler) judgeOthers(ctx context.Context, s *scope) (loop.Outcome, error) {
	name := shownTarget(s.export, s.export.EffectiveTarget())

	switch {
	case !s.export.Spec.Adopt:
		why, remedy, err := r.belongsTo(ctx, s)
		if err != nil {
			return loop.Outcome{}, err
		}

		return loop.Stall(v1alpha1.ReasonConflict, "Secret %q is not written: %s; %s", name, why, remedy), nil
	case !s.secret.DeletionTimestamp.IsZero():
		return targetDeleting(name, s.secret), nil
	case r.options.Sources.Why(s.secret) != "":
		return loop.Stall(v1alpha1.ReasonSecretProtected, "Secret %q is not adopted: it %s; %s", name, r.options.Sources.Why(s.secret), chooseAnother), nil
	case !s.hubs.Ours(s.secret.Labels[v1alpha1.MarkHub]):
		hub := s.secret.Labels[v1alpha1.MarkHub]

		return loop.Stall(v1alpha1.ReasonOwnedByOtherHub, "Secret %q is not adopted: %s. %s", name, s.hubs.Differ(hub),
			hubs.Advice(hub, "Secret", fmt.Sprintf("OmniConnection %q", s.connection.Name))), nil
	}

	refused, err := r.adopt(ctx, s)
	if err != nil {
		return loop.Outcome{}, err
	}

	if refused != "" {
		return loop.Stall(v1alpha1.ReasonConflict, "Secret %q is not adopted: %s; %s", name, refused, chooseAnother), nil
	}

	return loop.Proceed(), nil
}

// targetDeleting returns the outcome for a target that is being deleted.
func targetDeleting(name string, secret *corev1.Secret) loop.Outcome {
	return loop.Wait(0, v1alpha1.ReasonTargetDeleting, "Secret %q is being deleted and is made again when it is gone; it is held by finalizers %v",
		name, secret.Finalizers)
}

// carriesMark reports whether a Secret carries the mark of an export and is no copy: a copy under another name has the label
// as well. Where the status says that it was written counts like the annotation, which can be lost. The caller also has to check
// the hub in the mark.
func carriesMark(secret metav1.Object, export *v1alpha1.OmniKubeconfigExport) bool {
	if export.UID == "" || secret.GetLabels()[v1alpha1.LabelExportUID] != string(export.UID) {
		return false
	}

	as, written := secret.GetAnnotations()[v1alpha1.AnnotationExportSecret], export.WrittenTarget()

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

// chooseAnother is the advice about another's Secret.
const chooseAnother = "choose another spec.targetSecretRef, or delete that Secret if nobody needs it"

// belongsTo returns to whom a Secret belongs that is not ours, and what to do.
func (r *reconciler) belongsTo(ctx context.Context, s *scope) (why, remedy string, err error) {
	uid := s.secret.Labels[v1alpha1.LabelExportUID]

	switch uid {
	case "":
		return "it exists and was not made by an OmniKubeconfigExport", r.takeOver(s), nil
	case string(s.export.UID):
		return fmt.Sprintf("it is a copy of Secret %q that somebody made", s.secret.Annotations[v1alpha1.AnnotationExportSecret]), chooseAnother, nil
	}

	owner, err := r.livingOwner(ctx, s)
	if err != nil {
		return "", "", err
	}

	if owner != "" {
		return fmt.Sprintf("it belongs to OmniKubeconfigExport %q", owner), chooseAnother, nil
	}

	return redact.Line(formerOwner(s, uid)), r.takeOver(s), nil
}

// livingOwner returns the name of this namespace's export with the UID in the target's mark; empty if there is none.
func (r *reconciler) livingOwner(ctx context.Context, s *scope) (string, error) {
	uid := s.secret.Labels[v1alpha1.LabelExportUID]
	if uid == "" || uid == string(s.export.UID) {
		return "", nil
	}

	// This reads the API server: a user who reads that the owner is gone may take the Secret away from it.
	reader, options := r.live, []client.ListOption{client.InNamespace(s.export.Namespace)}

	// The owner has written its name beside its UID, so a look at that one is enough. Only a mark that somebody has set by hand has the
	// UID of another one, which the cache has by then.
	if name := s.secret.Annotations[v1alpha1.AnnotationExportName]; name != "" {
		named := &v1alpha1.OmniKubeconfigExport{}

		err := r.live.Get(ctx, client.ObjectKey{Namespace: s.export.Namespace, Name: name}, named)
		if client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("look for the owner of Secret %q: %w", s.secret.Name, err)
		}

		if err == nil && string(named.UID) == uid {
			return name, nil
		}

		reader, options = r.client, append(options, client.MatchingFields{index.ByUID: uid}, client.UnsafeDisableDeepCopy)
	}

	list := &v1alpha1.OmniKubeconfigExportList{}
	if err := reader.List(ctx, list, options...); err != nil {
		return "", fmt.Errorf("look for the owner of Secret %q: %w", s.secret.Name, err)
	}

	for i := range list.Items {
		if string(list.Items[i].UID) == uid {
			return list.Items[i].Name, nil
		}
	}

	return "", nil
}

// formerOwner returns what is known of an owner that does not exist.
func formerOwner(s *scope, uid string) string {
	annotations := s.secret.Annotations
	name, writer := annotations[v1alpha1.AnnotationExportName], writerOf(s.secret)
	gone := fmt.Sprintf("(UID %s), which does not exist in this namespace any more", uid)

	if hub := s.secret.Labels[v1alpha1.MarkHub]; !s.hubs.Ours(hub) {
		gone = fmt.Sprintf("(UID %s) in another hub, %s (this hub is %s)", uid, hub, s.hubs.Own)
	}

	switch {
	case name != "" && writer.Namespace != s.export.Namespace:
		return fmt.Sprintf("it was made by OmniKubeconfigExport %q (UID %s)", writer, uid)
	case name != "" && name == s.export.Name:
		return "it was made by an earlier OmniKubeconfigExport of this name " + gone
	case name != "":
		return fmt.Sprintf("it was made by OmniKubeconfigExport %q %s", name, gone)
	case annotations[formerName] != "":
		return fmt.Sprintf("it was made by the operator with CRDs for its OmniKubeconfigExport %q %s", writer, gone)
	default:
		return "it was made by an OmniKubeconfigExport of which only the UID is known " + gone
	}
}

// takeOver returns what to do about a Secret without an existing owner or without a mark.
func (r *reconciler) takeOver(s *scope) string {
	if !s.hubs.Ours(s.secret.Labels[v1alpha1.MarkHub]) || r.options.Sources.Why(s.secret) != "" {
		return chooseAnother
	}

	if mayAdopt(s.secret, s.export, s.shape, "") == "" {
		return "to have this object go on with it, set spec.adopt: true; or delete it, and it is made anew; or choose another spec.targetSecretRef"
	}

	labelled := s.secret.DeepCopy()
	metav1.SetMetaDataLabel(&labelled.ObjectMeta, v1alpha1.LabelExportUID, string(s.export.UID))

	if s.secret.Labels[v1alpha1.LabelExportUID] == "" || !carriesMark(labelled, s.export) {
		return chooseAnother
	}

	return fmt.Sprintf("to have this object go on with it, set its label %s to %s; or delete it, and it is made anew; or choose another spec.targetSecretRef",
		v1alpha1.LabelExportUID, s.export.UID)
}
