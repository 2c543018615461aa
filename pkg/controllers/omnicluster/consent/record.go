package consent

import (
	"slices"

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

// growth says what a record may grow by, of what the documents of a plan want.
type growth struct {
	all  bool          // everything that Omni has
	made []plan.Change // what the run created itself
}

// by reports whether a record may grow by a resource.
func (g growth) by(kind, id string) bool {
	return g.all || slices.ContainsFunc(g.made, func(change plan.Change) bool { return change.Type == kind && change.ID == id })
}

// Next returns the record after a run that left these changes.
func (r Record) Next(planned *plan.Plan, left []plan.Change, grow growth) Record {
	return Record{
		sets:      r.sets.updated(planned.Wanted, planned.Live, left, grow),
		manifests: r.manifests.updated(planned.WantedManifests, planned.LiveManifests, left, grow),
	}
}

// Exceeds reports whether a record holds anything that another does not.
func (r Record) Exceeds(other Record) bool {
	return r.sets.exceeds(other.sets) || r.manifests.exceeds(other.manifests)
}
