package consent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

func TestManifestRecord(t *testing.T) {
	change := func(action plan.Action, id string) []plan.Change {
		return []plan.Change{{Action: action, Type: plan.TypeManifestGroup, ID: id}}
	}
	ids := func(ids ...string) []string { return ids }

	for name, test := range map[string]struct {
		before       manifestRecord
		wanted, live []string
		left         []plan.Change
		stands       bool // nothing new is recorded
		want         manifestRecord
	}{
		"nothing": {},
		"everything is as wanted, and nothing was recorded": {wanted: ids("b", "a"), live: ids("a", "b"), want: manifestRecord{"a", "b"}},
		"made in this run":                  {wanted: ids("a"), want: manifestRecord{"a"}},
		"not made yet":                      {wanted: ids("a"), left: change(plan.ActionCreate, "a")},
		"somebody's":                        {live: ids("theirs"), left: change(plan.ActionDestroy, "theirs")},
		"going":                             {before: manifestRecord{"a"}, live: ids("a"), left: change(plan.ActionDestroy, "a"), want: manifestRecord{"a"}},
		"destroyed in this run":             {before: manifestRecord{"a", "b"}, wanted: ids("b"), live: ids("a", "b"), want: manifestRecord{"b"}},
		"gone":                              {before: manifestRecord{"a"}},
		"gone, and wanted anew":             {before: manifestRecord{"a"}, wanted: ids("a"), left: change(plan.ActionCreate, "a")},
		"somebody's of the ID that is ours": {wanted: ids("a"), live: ids("a"), left: change(plan.ActionUpdate, "a")},
		"content that is not applied yet":   {before: manifestRecord{"a"}, wanted: ids("a"), live: ids("a"), left: change(plan.ActionUpdate, "a"), want: manifestRecord{"a"}},
		"to one-time, held":                 {before: manifestRecord{"a"}, live: ids("a"), left: change(plan.ActionUpdate, "a"), want: manifestRecord{"a"}},
		"to one-time, done":                 {before: manifestRecord{"a"}, live: ids("a")},
		"to full, not done":                 {wanted: ids("a"), left: change(plan.ActionUpdate, "a")},
		"another type of that ID":           {wanted: ids("a"), left: []plan.Change{{Action: plan.ActionCreate, Type: setType, ID: "a"}}, want: manifestRecord{"a"}},
		"suspended: nothing new":            {before: manifestRecord{"a", "gone"}, wanted: ids("a", "b"), live: ids("a", "b"), stands: true, want: manifestRecord{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.before.updated(test.wanted, test.live, test.left, growth{all: !test.stands})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}

			if again := got.updated(test.wanted, test.live, test.left, growth{all: !test.stands}); len(test.live) > 0 && !cmp.Equal(got, again) {
				t.Errorf("a second time: %v", again)
			}
		})
	}
}

func TestManifestRecordKnowsWhatIsForeign(t *testing.T) {
	record := Record{sets: appliedRecord{{ID: "demo-w"}}, manifests: manifestRecord{"ours"}}

	for _, test := range []struct {
		action plan.Action
		id     string
		want   string
	}{
		{plan.ActionDestroy, "ours", ""},
		{plan.ActionUpdate, "ours", ""},
		{plan.ActionDestroy, "theirs", "not made by this object"},
		{plan.ActionUpdate, "theirs", "not made full by this object"},
		{plan.ActionDestroy, "demo-w", "not made by this object"},
	} {
		if got := record.foreign(plan.Change{Action: test.action, Type: plan.TypeManifestGroup, ID: test.id}, &plan.Plan{}); got != test.want {
			t.Errorf("%s %s: %q", test.action, test.id, got)
		}
	}

	if got := record.foreign(teardown("ours", time.Time{}), &plan.Plan{}); got != "not made by this object" {
		t.Errorf("a set of the ID of a manifest group: %q", got)
	}
}

func TestRecordOfBothExceeds(t *testing.T) {
	before := Record{sets: appliedRecord{{ID: "w"}}, manifests: manifestRecord{"a"}}

	for name, test := range map[string]struct {
		after Record
		want  bool
	}{
		"the same":     {before, false},
		"less":         {Record{}, false},
		"a group more": {Record{manifests: manifestRecord{"a", "b"}}, true},
		"a set more":   {Record{sets: appliedRecord{{ID: "x"}}}, true},
	} {
		if got := test.after.Exceeds(before); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
