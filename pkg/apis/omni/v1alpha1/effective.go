package v1alpha1

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ControlPlaneSetName is the name that Omni gives the machine set of a control plane.
const ControlPlaneSetName = "control-planes"

// EffectiveClusterName is the cluster's name in Omni: spec.clusterName, or the object's name.
func (o *OmniCluster) EffectiveClusterName() string { return cmp.Or(o.Spec.ClusterName, o.Name) }

// EffectiveWorkerSetName is the set's name in Omni: spec.workerSetName, or the object's name.
func (o *OmniWorkers) EffectiveWorkerSetName() string { return cmp.Or(o.Spec.WorkerSetName, o.Name) }

// EffectiveMachineID is the machine's UUID as Omni writes it: spec.machineID, or the object's name.
func (o *OmniMachine) EffectiveMachineID() string {
	id := cmp.Or(o.Spec.MachineID, o.Name)
	if canonical, ok := CanonicalUUID(id); ok {
		return canonical
	}

	return id
}

// EffectiveTarget is the Secret to write: in spec.targetSecretRef.namespace, or in the object's namespace.
func (o *OmniKubeconfigExport) EffectiveTarget() types.NamespacedName {
	ref := o.Spec.TargetSecretRef

	return types.NamespacedName{Namespace: cmp.Or(ref.Namespace, o.Namespace), Name: ref.Name}
}

// WrittenTarget is the Secret that the status says was written; empty if none was.
func (o *OmniKubeconfigExport) WrittenTarget() types.NamespacedName {
	ref := o.Status.TargetSecretRef
	if ref == nil || ref.Name == "" {
		return types.NamespacedName{}
	}

	return types.NamespacedName{Namespace: cmp.Or(ref.Namespace, o.Namespace), Name: ref.Name}
}

// EffectiveReleaseName is Helm's name of the release: spec.releaseName, or the object's name.
func (o *OmniHelmRelease) EffectiveReleaseName() string { return cmp.Or(o.Spec.ReleaseName, o.Name) }

// RollsBack reports whether a failed upgrade goes back to the last good revision: spec.rollbackOnFailure, or atomic, its
// older name.
func (s *OmniHelmReleaseSpec) RollsBack() bool {
	rollback := cmp.Or(s.RollbackOnFailure, s.Atomic)

	return rollback != nil && *rollback
}

// Parse reads the duration; an empty one is 0. The error is time.ParseDuration's.
func (d Duration) Parse() (time.Duration, error) {
	if d == "" {
		return 0, nil
	}

	return time.ParseDuration(string(d))
}

// OrDefault is the parsed duration, or def if it is empty or (in an object stored under an older
// rule) not readable.
func (d Duration) OrDefault(def time.Duration) time.Duration {
	parsed, err := d.Parse()
	if d == "" || err != nil {
		return def
	}

	return parsed
}

// Reconcilable is what the controllers need of every kind's status.
type Reconcilable interface {
	// GetReconcileStatus returns the shared part of the status, to read and to write.
	GetReconcileStatus() *ReconcileStatus
}

// ConditionsPtr returns the conditions, to read and to write.
func (s *ReconcileStatus) ConditionsPtr() *[]metav1.Condition { return &s.Conditions }

// GetReconcileStatus returns the shared part of the status.
func (o *OmniConnection) GetReconcileStatus() *ReconcileStatus { return &o.Status.ReconcileStatus }

// GetReconcileStatus returns the shared part of the status.
func (o *OmniRolloutPolicy) GetReconcileStatus() *ReconcileStatus { return &o.Status.ReconcileStatus }

// GetReconcileStatus returns the shared part of the status.
func (o *OmniCluster) GetReconcileStatus() *ReconcileStatus { return &o.Status.ReconcileStatus }

// GetReconcileStatus returns the shared part of the status.
func (o *OmniControlPlane) GetReconcileStatus() *ReconcileStatus { return &o.Status.ReconcileStatus }

// GetReconcileStatus returns the shared part of the status.
func (o *OmniWorkers) GetReconcileStatus() *ReconcileStatus { return &o.Status.ReconcileStatus }

// GetReconcileStatus returns the shared part of the status.
func (o *OmniMachine) GetReconcileStatus() *ReconcileStatus { return &o.Status.ReconcileStatus }

// GetReconcileStatus returns the shared part of the status.
func (o *OmniKubeconfigExport) GetReconcileStatus() *ReconcileStatus {
	return &o.Status.ReconcileStatus
}

// GetReconcileStatus returns the shared part of the status.
func (o *OmniSecretSync) GetReconcileStatus() *ReconcileStatus { return &o.Status.ReconcileStatus }

// GetReconcileStatus returns the shared part of the status.
func (o *OmniHelmRelease) GetReconcileStatus() *ReconcileStatus { return &o.Status.ReconcileStatus }
