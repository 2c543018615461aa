package consent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// at is a time of Omni, with the parts of a second that no status keeps.
func at(second int64) time.Time { return time.Unix(1_700_000_000+second, 5_000_000) }

func storedAt(second int64) metav1.Time {
	return metav1.Time{Time: time.Unix(1_700_000_000+second, 0).UTC()}
}

// What was made again since, under the same name, is not what a record is of.
func TestRecordIsOfWhatOmniMadeThen(t *testing.T) {
	record := Record{
		sets: appliedRecord{{ID: "w", Size: "pool/2"}, {ID: "l", Machines: []string{"m1", "m2"}}}, manifests: manifestRecord{"g"},
		times: recordTimes{"w": storedAt(1), "l": storedAt(2), "m1": storedAt(3), "m2": storedAt(4), "g": storedAt(5)},
	}
	since := func(edit func(map[string]time.Time)) map[string]time.Time {
		times := map[string]time.Time{"w": at(1), "l": at(2), "m1": at(3), "m2": at(4), "g": at(5), "theirs": at(6)}
		edit(times)

		return times
	}
	same := since(func(map[string]time.Time) {})
	resize := plan.Change{Action: plan.ActionUpdate, Type: setType, ID: "w", Set: "w", Destructive: true, OldSize: "pool/2", NewSize: "pool/1"}
	node := plan.Change{Action: plan.ActionDestroy, Type: nodeType, ID: "m2", Set: "l", Destructive: true}
	group := plan.Change{Action: plan.ActionDestroy, Type: plan.TypeManifestGroup, ID: "g", Destructive: true}
	again := func(id string) map[string]time.Time {
		return since(func(times map[string]time.Time) { times[id] = at(60) })
	}
	untimed := record
	untimed.times = nil

	const notRecorded = "made in Omni at 2023-11-14T22:14:20Z, which this object does not record"

	for name, test := range map[string]struct {
		record Record
		change plan.Change
		since  map[string]time.Time
		want   string
	}{
		"the set":                    {record, teardown("w", at(1)), same, ""},
		"its size":                   {record, resize, same, ""},
		"a machine":                  {record, node, same, ""},
		"the manifests":              {record, group, same, ""},
		"another set was made again": {record, teardown("w", at(1)), again("l"), ""},
		"the set was made again":     {record, teardown("w", at(60)), again("w"), notRecorded},
		"and is to shrink":           {record, resize, again("w"), notRecorded},
		"the machine came again":     {record, node, again("m2"), notRecorded},
		"and its set goes": {
			record, teardown("l", at(2)), again("m2"), "holds machine m2, put there at 2023-11-14T22:14:20Z, which this object does not record",
		},
		"a machine of the set that stays": {record, node, again("m1"), ""},
		"the manifests were made again":   {record, group, again("g"), notRecorded},
		"a record without times":          {untimed, teardown("w", at(60)), again("w"), notRecorded},
		"not in Omni any more":            {record, node, since(func(times map[string]time.Time) { delete(times, "m2") }), ""},
	} {
		live := []plan.SetState{{ID: "l", Machines: []string{"m1", "m2"}}, {ID: "w", Size: "pool/2"}}
		if got := test.record.foreign(test.change, &plan.Plan{Live: live, LiveSince: test.since}); got != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestRecordTimesAreUpdated(t *testing.T) {
	sets := appliedRecord{{ID: "w", Machines: []string{"m1"}}}
	state := []plan.SetState{{ID: "w", Machines: []string{"m1"}}}
	destroy := plan.Change{Action: plan.ActionDestroy, Type: nodeType, ID: "m1", Set: "w"}

	for name, test := range map[string]struct {
		before recordTimes
		wanted []plan.SetState
		left   []plan.Change
		grow   growth
		want   recordTimes
	}{
		"as wanted":              {nil, state, nil, growth{all: true}, recordTimes{"w": storedAt(1), "m1": storedAt(2)}},
		"made again":             {recordTimes{"w": storedAt(1), "m1": storedAt(0)}, state, nil, growth{all: true}, recordTimes{"w": storedAt(1), "m1": storedAt(2)}},
		"nothing may be added":   {recordTimes{"w": storedAt(0)}, state, nil, growth{}, recordTimes{"w": storedAt(0)}},
		"a machine that goes":    {recordTimes{"w": storedAt(0), "m1": storedAt(0)}, []plan.SetState{{ID: "w"}}, []plan.Change{destroy}, growth{all: true}, recordTimes{"w": storedAt(1), "m1": storedAt(0)}},
		"a set that goes":        {recordTimes{"w": storedAt(0)}, nil, []plan.Change{destroy, teardown("w", at(1))}, growth{all: true}, recordTimes{"w": storedAt(0)}},
		"created in this run":    {nil, state, nil, growth{made: []plan.Change{{Type: nodeType, ID: "m1"}}, at: map[string]time.Time{"m1": at(9)}}, recordTimes{"m1": storedAt(9)}},
		"another one is to come": {recordTimes{"m1": storedAt(0)}, state, []plan.Change{{Action: plan.ActionCreate, Type: nodeType, ID: "m1"}}, growth{all: true}, recordTimes{"w": storedAt(1), "m1": storedAt(0)}},
	} {
		planned := &plan.Plan{Wanted: test.wanted, Live: state, LiveSince: map[string]time.Time{"w": at(1), "m1": at(2), "theirs": at(3)}}
		if diff := cmp.Diff(test.want, test.before.updated(Record{sets: sets}, planned, test.left, test.grow)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}

	if named := (Record{times: recordTimes{"w": storedAt(1)}}).WithMoved(nil).WithWorkers(nil); !named.times.records("w", at(1)) {
		t.Error("the times are lost where sets get names")
	}

	later := Record{times: recordTimes{"w": storedAt(2)}}
	if before := (Record{times: recordTimes{"w": storedAt(1), "x": storedAt(1)}}); !later.Exceeds(before) || (Record{times: recordTimes{"x": storedAt(1)}}).Exceeds(before) {
		t.Error("a record exceeds another if it has another time")
	}
}
