package consent

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// manifestRecord has the IDs of the manifest groups of mode full that Omni has from this object, sorted. Removing any
// other group would remove objects from the running cluster although nobody asked for that.
type manifestRecord []string

// foreign is Record.foreign for a manifest group.
func (m manifestRecord) foreign(change plan.Change) string {
	switch {
	case slices.Contains(m, change.ID):
		return ""
	case change.Action == plan.ActionUpdate:
		return "not made full by this object"
	default:
		return "not made by this object"
	}
}

// updated returns the next record, by the rules of appliedRecord.updated. A group that is no longer full counts as
// gone.
func (m manifestRecord) updated(wanted, live []string, left []plan.Change, grow growth) manifestRecord {
	var next manifestRecord

	open := map[string]bool{}

	for _, change := range left {
		if change.Type == plan.TypeManifestGroup {
			open[change.ID] = true
		}
	}

	for _, id := range m {
		if slices.Contains(live, id) && (open[id] || slices.Contains(wanted, id)) {
			next = append(next, id)
		}
	}

	for _, id := range wanted {
		if grow.by(plan.TypeManifestGroup, id) && !open[id] && !slices.Contains(next, id) {
			next = append(next, id)
		}
	}

	slices.Sort(next)

	return next
}

// exceeds reports whether a record holds a group that another does not.
func (m manifestRecord) exceeds(other manifestRecord) bool {
	return slices.ContainsFunc(m, func(id string) bool { return !slices.Contains(other, id) })
}

// recordTimes has when Omni made what a record names, by ID. A status may be older than what Omni has: after the restore of
// a backup, a set that was to go may have gone since, and have been made again.
type recordTimes map[string]metav1.Time

// records reports whether a record is of what Omni made at a time.
func (r recordTimes) records(id string, made time.Time) bool {
	recorded, has := r[id]

	return has && recorded.Time.Equal(words.StoredTime(made).Time)
}

// foreign returns the first of some IDs that Omni made at another time than recorded, and when.
func (r recordTimes) foreign(planned *plan.Plan, ids ...string) (id string, made time.Time) {
	for _, id := range ids {
		if made, has := planned.LiveSince[id]; has && !r.records(id, made) {
			return id, made
		}
	}

	return "", time.Time{}
}

// updated returns the times of the next record. What the documents want and Omni has gets the time when Omni made it, if the
// record may grow by it; anything else keeps the time that was recorded.
func (r recordTimes) updated(next Record, planned *plan.Plan, left []plan.Change, grow growth) recordTimes {
	times, current := recordTimes{}, map[omni.ResourceKey]bool{}
	for _, key := range wantedOf(planned).all() {
		current[key] = grow.by(key.ResourceType, key.ID)
	}

	for _, change := range left {
		current[omni.ResourceKey{ResourceType: change.Type, ID: change.ID}] = false
	}

	for _, key := range next.all() {
		if made, known := grow.since(planned, key.ID); known && current[key] {
			times[key.ID] = words.StoredTime(made)
		} else if recorded, has := r[key.ID]; has {
			times[key.ID] = recorded
		}
	}

	if len(times) == 0 {
		return nil
	}

	return times
}

// wantedOf returns the record of everything that the template of a plan wants.
func wantedOf(planned *plan.Plan) Record {
	wanted := Record{manifests: planned.WantedManifests}
	for _, set := range planned.Wanted {
		wanted.sets = append(wanted.sets, v1alpha1.AppliedMachineSet{ID: set.ID, Machines: set.Machines})
	}

	return wanted
}

// exceeds reports whether a record has a time that another does not have.
func (r recordTimes) exceeds(other recordTimes) bool {
	for id, made := range r {
		if !other.records(id, made.Time) {
			return true
		}
	}

	return false
}
