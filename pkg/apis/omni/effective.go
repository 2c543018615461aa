package omni

import "cmp"

// EffectiveClusterName is the cluster's name in Omni: spec.clusterName, or the object's name.
func (c *OmniCluster) EffectiveClusterName() string { return cmp.Or(c.Spec.ClusterName, c.Name) }

// EffectiveWorkerSetName is the set's name in Omni: spec.workerSetName, or the object's name.
func (w *OmniWorkers) EffectiveWorkerSetName() string { return cmp.Or(w.Spec.WorkerSetName, w.Name) }

// EffectiveMachineID is the machine's UUID: spec.machineID, or the object's name.
func (m *OmniMachine) EffectiveMachineID() string { return cmp.Or(m.Spec.MachineID, m.Name) }

// EffectiveReleaseName is Helm's name of the release: spec.releaseName, or the object's name.
func (r *OmniHelmRelease) EffectiveReleaseName() string { return cmp.Or(r.Spec.ReleaseName, r.Name) }

// GetReconcileStatus returns the shared part of the status.
func (o *OmniConnection) GetReconcileStatus() *ReconcileStatus { return &o.Status.ReconcileStatus }

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
