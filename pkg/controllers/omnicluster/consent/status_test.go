package consent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

func TestHashToApprove(t *testing.T) {
	asked, theirs, other := teardown("asked", time.Unix(0, 0)), teardown("theirs", time.Unix(0, 0)), teardown("other", time.Unix(0, 0))
	begun := teardown("begun", time.Unix(0, 0))
	begun.TearingDown = true
	harmless := plan.Change{Action: plan.ActionCreate, Type: "ConfigPatches.omni.sidero.dev", ID: "p"}
	list := func(changes ...plan.Change) []plan.Change { return changes }

	for name, test := range map[string]struct {
		left, requested, needApproval, want []plan.Change
	}{
		"nothing":                      {},
		"nothing destructive":          {left: list(harmless)},
		"what needs approval":          {left: list(harmless, asked, theirs), needApproval: list(theirs), want: list(theirs)},
		"nothing needs approval":       {left: list(asked, harmless), want: list(asked)},
		"all of it":                    {left: list(theirs, other), needApproval: list(theirs, other), want: list(other, theirs)},
		"some was done":                {left: list(other), needApproval: list(theirs, other), want: list(other)},
		"some was requested":           {left: list(asked, theirs), requested: list(asked), needApproval: list(theirs), want: list(theirs)},
		"everything was requested":     {left: list(asked, theirs), requested: list(asked, theirs)},
		"requested by an earlier run":  {left: list(begun)},
		"what is left after a refusal": {left: list(asked, other), requested: list(asked), want: list(other)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := leaving(test.left, test.requested, test.needApproval).Hash(); got != plan.HashOf(test.want) {
				t.Errorf("got %q", got)
			}
		})
	}
}

// leaving is a decision that was carried out up to what is left. Of that some was
// requested, and some needs an approval that it does not have.
func leaving(left, requested, needApproval []plan.Change) Decision {
	d := Decision{facts: Facts{Cluster: newCluster(), Plan: planned(left...)}}

	for _, change := range left {
		item := Item{Change: change, State: Held, Hold: HoldUntried, Took: containsChange(requested, change)}
		if containsChange(needApproval, change) {
			item.Needs = NeedsApproval
		}

		d.Items = append(d.Items, item)
	}

	return d
}

func TestPlanStatusListsDestructiveChangesFirstAndCapsTheList(t *testing.T) {
	changes := []plan.Change{{Action: plan.ActionUpdate, Type: "Clusters.omni.sidero.dev", ID: "demo"}}
	for range 60 {
		changes = append(changes, plan.Change{Action: plan.ActionCreate, Type: "ConfigPatches.omni.sidero.dev", ID: "p"})
	}

	changes = append(changes, teardown("w", time.Unix(0, 0)))
	d := leaving(changes, nil, changes[61:])

	got := d.PlanStatus()
	if got.Creates != 60 || got.Updates != 1 || got.Destroys != 1 || got.Destructive != 1 || got.Hash != plan.HashOf(changes[61:]) {
		t.Errorf("%+v", got)
	}

	if len(got.Changes) != 50 || got.OmittedChanges != 12 {
		t.Errorf("%d changes, %d omitted", len(got.Changes), got.OmittedChanges)
	}

	want := v1alpha1.PlannedChange{Action: "Destroy", Type: "MachineSets.omni.sidero.dev", ID: "w", Destructive: true, NeedsApproval: true}
	if diff := cmp.Diff(want, got.Changes[0]); diff != "" {
		t.Error(diff)
	}

	if done := d.After(plan.Result{Applied: changes}, nil).PlanStatus(); done.Hash != "" || done.Destroys != 0 || done.Diff != "" {
		t.Errorf("a plan that is done: %+v", done)
	}
}

// What has begun needs no approval any more: the status does not keep it for
// every machine until Omni has reset it.
func TestPlanStatusForgetsApprovalsOfWhatHasBegun(t *testing.T) {
	waits, requested, begun := teardown("waits", time.Unix(0, 0)), teardown("requested", time.Unix(0, 0)), teardown("begun", time.Unix(0, 0))
	all := []plan.Change{waits, requested, begun}
	approved := approvalsOf(all)
	begun.TearingDown = true

	d := leaving([]plan.Change{waits, requested, begun}, []plan.Change{requested}, nil)
	d.Approved = approved

	got := d.PlanStatus()
	if diff := cmp.Diff(approved[:1], got.Approved); diff != "" {
		t.Error(diff)
	}

	if got.Hash != plan.HashOf([]plan.Change{waits}) || got.Destructive != 3 {
		t.Errorf("%+v", got)
	}
}
