package omnikubeconfigexport

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// mayWrite decides whether the controller writes to the namespace of the target. The API server has checked whether the
// user may.
func (r *reconciler) mayWrite(export *v1alpha1.OmniKubeconfigExport) loop.Outcome {
	target := export.EffectiveTarget()
	if r.serves(export, target.Namespace) {
		return loop.Proceed()
	}

	return loop.Stall(v1alpha1.ReasonNamespaceNotAllowed,
		"Secret %q is not written: its namespace is not one of --export-namespaces (controller.exportNamespaces in the chart), or "+
			"omni-controller found at its start that it may not handle Secrets there, see its log: add it, or choose another spec.targetSecretRef", target)
}

// serves reports whether the controller writes the export's Secrets in a namespace.
func (r *reconciler) serves(export *v1alpha1.OmniKubeconfigExport, namespace string) bool {
	return namespace == export.Namespace || slices.Contains(r.options.Namespaces, namespace)
}

// shown returns a Secret's name for messages.
func (s *scope) shown(secret metav1.Object) string { return shownTarget(s.export, keyOf(secret)) }

// shownTarget returns the name of an export's Secret for messages: with its namespace, if that is not the export's.
func shownTarget(export *v1alpha1.OmniKubeconfigExport, secret types.NamespacedName) string {
	if secret.Namespace == export.Namespace {
		return secret.Name
	}

	return secret.String()
}

// elsewhere returns a namespace in the form of the export's references: empty for its own.
func elsewhere(export *v1alpha1.OmniKubeconfigExport, namespace string) string {
	if namespace == export.Namespace {
		return ""
	}

	return namespace
}
