package consent

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

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
