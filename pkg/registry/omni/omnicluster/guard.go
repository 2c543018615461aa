package omnicluster

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// confirmDeletion refuses the deletion of a cluster that asks for confirmation until its annotation confirm-deletion
// has the cluster's name. Deleting a cluster destroys its machines' data, so neither the deletion of a namespace nor
// the garbage collector may delete it as a side effect.
func confirmDeletion(o *v1alpha1.OmniCluster, byDefault bool) error {
	required := byDefault
	if wanted := o.Spec.DeletePolicy.RequireConfirmation; wanted != nil {
		required = *wanted
	}

	if !required || v1alpha1.IsDeletionConfirmed(o) {
		return nil
	}

	return apierrors.NewForbidden(v1alpha1.Resource("omniclusters"), o.Name, fmt.Errorf(
		"deletion needs confirmation (spec.deletePolicy.requireConfirmation): annotate it with %s=%s first; "+
			"if it is not to be deleted, end the operation of the tool that tries again (Argo CD: argocd app terminate-op)",
		v1alpha1.AnnotationConfirmDeletion, o.Name))
}

// deletionOf is what a deletion does to the cluster.
func deletionOf(o *v1alpha1.OmniCluster) kit.Deletion {
	if o.Spec.DeletePolicy.Orphan || o.Spec.ChangePolicy == v1alpha1.ChangePolicyObserve {
		return kit.Deletion{}
	}

	does := fmt.Sprintf("destroys cluster %q in Omni, if this object made or adopted it", o.EffectiveClusterName())
	if count := countMachines(o); count > 0 {
		does = fmt.Sprintf("destroys cluster %q in Omni and wipes %s", o.EffectiveClusterName(), words.Plural(count, "machine"))
	}

	return kit.Deletion{Does: does, Keep: "set spec.deletePolicy.orphan: true first to keep it"}
}

// countMachines counts the machines of the cluster that Omni has reported; 0 if it is not known, or if another object has the
// cluster.
func countMachines(o *v1alpha1.OmniCluster) int {
	if o.Status.Omni == nil {
		return 0
	}

	count := 0
	for i := range o.Status.Omni.MachineSets {
		count += int(o.Status.Omni.MachineSets[i].Machines.Total)
	}

	return count
}
