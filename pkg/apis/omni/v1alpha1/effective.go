package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// ControlPlaneSetName is the name that Omni gives the machine set of a control plane.
const ControlPlaneSetName = "control-planes"

// EffectiveClusterName returns the cluster's name in Omni: spec.clusterName, or the object's name.
func (o *OmniCluster) EffectiveClusterName() string { return cmp.Or(o.Spec.ClusterName, o.Name) }

// IsPlan reports whether a plan status is a plan, and not only approvals that outlast runs without a plan. A plan counts
// what is approved and not done yet. It may be nil.
func (p *OmniClusterPlan) IsPlan() bool {
	return p != nil && (len(p.Approved) == 0 || p.Destructive > 0)
}

// EffectiveWorkerSetName returns the set's name in Omni: spec.workerSetName, or the object's name.
func (o *OmniWorkers) EffectiveWorkerSetName() string { return cmp.Or(o.Spec.WorkerSetName, o.Name) }

// EffectiveMachineID returns the machine's UUID as Omni writes it: spec.machineID, or the object's name.
func (o *OmniMachine) EffectiveMachineID() string {
	id := cmp.Or(o.Spec.MachineID, o.Name)
	if canonical, ok := CanonicalUUID(id); ok {
		return canonical
	}

	return id
}

// EffectiveTarget returns the Secret to write: in spec.targetSecretRef.namespace, or in the object's namespace.
func (o *OmniKubeconfigExport) EffectiveTarget() types.NamespacedName {
	ref := o.Spec.TargetSecretRef

	return types.NamespacedName{Namespace: cmp.Or(ref.Namespace, o.Namespace), Name: ref.Name}
}

// WrittenTarget returns the Secret that was written, from the status; empty if none was.
func (o *OmniKubeconfigExport) WrittenTarget() types.NamespacedName {
	ref := o.Status.TargetSecretRef
	if ref == nil || ref.Name == "" {
		return types.NamespacedName{}
	}

	return types.NamespacedName{Namespace: cmp.Or(ref.Namespace, o.Namespace), Name: ref.Name}
}

// EffectiveReleaseName returns the release's name in Helm: spec.releaseName, or the object's name.
func (o *OmniHelmRelease) EffectiveReleaseName() string { return cmp.Or(o.Spec.ReleaseName, o.Name) }

// RollsBack reports whether a failed upgrade is rolled back to the last good revision: spec.rollbackOnFailure, or its
// older name spec.atomic.
func (s *OmniHelmReleaseSpec) RollsBack() bool {
	rollback := cmp.Or(s.RollbackOnFailure, s.Atomic)

	return rollback != nil && *rollback
}

// ClusterRefField is the field that ClusterRefOf reads, as field selectors name it.
const ClusterRefField = "spec.clusterRef.name"

// ConnectionRefField is the field of an OmniCluster with its OmniConnection, as field selectors name it.
const ConnectionRefField = "spec.connectionRef.name"

// ClusterRefOf returns the name of the OmniCluster that an object refers to with spec.clusterRef; empty if it refers to
// none, and for a kind without that field.
func ClusterRefOf(object runtime.Object) string {
	switch o := object.(type) {
	case *OmniControlPlane:
		return o.Spec.ClusterRef.Name
	case *OmniWorkers:
		return o.Spec.ClusterRef.Name
	case *OmniMachine:
		return o.Spec.ClusterRef.Name
	case *OmniKubeconfigExport:
		return o.Spec.ClusterRef.Name
	case *OmniSecretSync:
		return o.Spec.ClusterRef.Name
	case *OmniHelmRelease:
		return o.Spec.ClusterRef.Name
	default:
		return ""
	}
}

// IsDeletionConfirmed reports whether an object has the annotation that confirms its deletion. An object without a name has not.
func IsDeletionConfirmed(object metav1.Object) bool {
	value := object.GetAnnotations()[AnnotationConfirmDeletion]

	return value != "" && value == object.GetName()
}
