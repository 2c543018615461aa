package consent

import (
	"fmt"
	"slices"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// Record lists what Omni has from this object, as its status records it.
type Record struct {
	sets      appliedRecord
	manifests manifestRecord
	times     recordTimes
}

// RecordOf returns the record for the cluster that Omni has now. The record of an earlier cluster is not valid for the
// cluster that took its place.
func RecordOf(status v1alpha1.OmniClusterStatus, live omni.Live) Record {
	if status.OmniClusterID != "" && live.UUID != status.OmniClusterID {
		return Record{}
	}

	return Record{sets: status.AppliedMachineSets, manifests: status.AppliedManifests, times: status.AppliedTimes}
}

// WithMoved returns the record with the sets whose OmniWorkers names another OmniCluster now: its name by the set's ID.
func (r Record) WithMoved(to map[string]string) Record {
	r.sets = r.sets.withMoved(to)

	return r
}

// WithWorkers returns the record with the names of the OmniWorkers that ask for its sets now, by the set's ID.
func (r Record) WithWorkers(names map[string]string) Record {
	r.sets = r.sets.withWorkers(names)

	return r
}

// Store writes the record into a status.
func (r Record) Store(status *v1alpha1.OmniClusterStatus) {
	status.AppliedMachineSets, status.AppliedManifests, status.AppliedTimes = r.sets, r.manifests, r.times
}

// all returns what the record names.
func (r Record) all() []omni.ResourceKey {
	var keys []omni.ResourceKey

	for _, set := range r.sets {
		keys = append(keys, omni.ResourceKey{ResourceType: plan.TypeMachineSet, ID: set.ID})
		for _, machine := range set.Machines {
			keys = append(keys, omni.ResourceKey{ResourceType: plan.TypeMachineSetNode, ID: machine})
		}
	}

	for _, id := range r.manifests {
		keys = append(keys, omni.ResourceKey{ResourceType: plan.TypeManifestGroup, ID: id})
	}

	return keys
}

// foreign returns, for messages, why a destructive change affects something that this object did not make; empty if it
// only removes what this object made.
func (r Record) foreign(change plan.Change, planned *plan.Plan) string {
	why := r.sets.foreign(change, planned.Live)
	if change.Type == plan.TypeManifestGroup {
		why = r.manifests.foreign(change)
	}

	if why != "" {
		return why
	}

	concerned := []string{change.ID}

	if set := findSet(planned.Live, change.ID); set != nil && change.Type == plan.TypeMachineSet && change.Action == plan.ActionDestroy {
		concerned = append(concerned, set.Machines...)
	}

	switch id, made := r.times.foreign(planned, concerned...); id {
	case "":
		return ""
	case change.ID:
		return fmt.Sprintf("made in Omni at %s, which this object does not record", words.Time(made))
	default:
		return fmt.Sprintf("holds machine %s, put there at %s, which this object does not record", id, words.Time(made))
	}
}

// growth says what a record may grow by, of what the documents of a plan want.
type growth struct {
	all  bool                 // everything that Omni has
	made []plan.Change        // what the run created itself
	at   map[string]time.Time // when Omni made that, by ID
}

// since returns when Omni made a resource; false if it has none.
func (g growth) since(planned *plan.Plan, id string) (time.Time, bool) {
	if made, isNew := g.at[id]; isNew {
		return made, true
	}

	made, has := planned.LiveSince[id]

	return made, has
}

// by reports whether a record may grow by a resource.
func (g growth) by(kind, id string) bool {
	return g.all || slices.ContainsFunc(g.made, func(change plan.Change) bool { return change.Type == kind && change.ID == id })
}

// Next returns the record after a run that left these changes.
func (r Record) Next(planned *plan.Plan, left []plan.Change, grow growth) Record {
	next := Record{
		sets:      r.sets.updated(planned.Wanted, planned.Live, left, grow),
		manifests: r.manifests.updated(planned.WantedManifests, planned.LiveManifests, left, grow),
	}
	next.times = r.times.updated(next, planned, left, grow)

	return next
}

// Exceeds reports whether a record holds anything that another does not.
func (r Record) Exceeds(other Record) bool {
	return r.sets.exceeds(other.sets) || r.manifests.exceeds(other.manifests) || r.times.exceeds(other.times)
}
