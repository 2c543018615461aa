package omnikubeconfigexport

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
)

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
