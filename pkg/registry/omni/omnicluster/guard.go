package omnicluster

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// confirmDeletion refuses the deletion of a cluster that asks for confirmation until its annotation confirm-deletion
// has the cluster's name. Deleting a cluster destroys its machines' data, so neither the deletion of a namespace nor
// the garbage collector may delete it as a side effect.
func confirmDeletion(o *v1alpha1.OmniCluster, byDefault bool) error {
	required := byDefault
	if wanted := o.Spec.DeletePolicy.RequireConfirmation; wanted != nil {
		required = *wanted
	}

	if !required || o.Annotations[v1alpha1.AnnotationConfirmDeletion] == o.Name {
		return nil
	}

	return apierrors.NewForbidden(v1alpha1.Resource("omniclusters"), o.Name, fmt.Errorf(
		"deletion needs confirmation (spec.deletePolicy.requireConfirmation): annotate it with %s=%s first; "+
			"if it is not to be deleted, end the operation of the tool that tries again (Argo CD: argocd app terminate-op)",
		v1alpha1.AnnotationConfirmDeletion, o.Name))
}

// keepInstead is for a deletion that is to orphan something.
func keepInstead(o *v1alpha1.OmniCluster) string {
	if o.Spec.DeletePolicy.Orphan || o.Spec.ChangePolicy == v1alpha1.ChangePolicyObserve {
		return ""
	}

	return "the cluster in Omni would be destroyed, if it is this object's. To keep it, set spec.deletePolicy.orphan: true, then delete the OmniCluster"
}
