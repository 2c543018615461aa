package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

// ShownReady reports whether the status says that the connection is Ready. After a restart of the controller, and after a
// change of the spec that it has not judged yet, that is what was true before.
func (o *OmniConnection) ShownReady() bool {
	return meta.IsStatusConditionTrue(o.Status.Conditions, ConditionReady)
}
