package consent

import (
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// Record lists what Omni has from this object, as its status records it.
type Record struct {
	sets      appliedRecord
	manifests manifestRecord
}

// RecordOf returns the record for the cluster that Omni has now. The record of an earlier cluster is not valid for the
// cluster that took its place.
func RecordOf(status v1alpha1.OmniClusterStatus, live omni.Live) Record {
	if status.OmniClusterID != "" && live.UUID != status.OmniClusterID {
		return Record{}
	}

	return Record{sets: status.AppliedMachineSets, manifests: status.AppliedManifests}
}

// Store writes the record into a status.
func (r Record) Store(status *v1alpha1.OmniClusterStatus) {
	status.AppliedMachineSets, status.AppliedManifests = r.sets, r.manifests
}

// foreign returns, for messages, why a destructive change affects something that this object did not make; empty if it
// only removes what this object made.
func (r Record) foreign(change plan.Change, live []plan.SetState) string {
	if change.Type == plan.TypeManifestGroup {
		return r.manifests.foreign(change)
	}

	return r.sets.foreign(change, live)
}

// Next returns the record after a run that left these changes. With grow false it adds nothing.
func (r Record) Next(planned *plan.Plan, left []plan.Change, grow bool) Record {
	return Record{
		sets:      r.sets.updated(planned.Wanted, planned.Live, left, grow),
		manifests: r.manifests.updated(planned.WantedManifests, planned.LiveManifests, left, grow),
	}
}

// Exceeds reports whether a record holds anything that another does not.
func (r Record) Exceeds(other Record) bool {
	return r.sets.exceeds(other.sets) || r.manifests.exceeds(other.manifests)
}
