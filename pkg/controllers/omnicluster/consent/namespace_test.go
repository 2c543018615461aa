package consent

import (
	"slices"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
)

// In a namespace that goes, an approval must not make the destroying half of a replacement.
func TestNamespaceGoesMakesNoHalf(t *testing.T) {
	goes, begun := teardown("goes", time.Unix(0, 0)), teardown("begun", time.Unix(0, 0))
	begun.TearingDown = true
	set := plan.Change{Action: plan.ActionCreate, Type: plan.TypeMachineSet, ID: "new"}
	node := plan.Change{Action: plan.ActionCreate, Type: plan.TypeMachineSetNode, ID: "new"}
	grown := plan.Change{Action: plan.ActionUpdate, Type: plan.TypeMachineSet, ID: "grown", OldSize: "pool/1", NewSize: "pool/3"}
	fewer := plan.Change{Action: plan.ActionUpdate, Type: plan.TypeMachineSet, ID: "fewer", OldSize: "3", NewSize: "2"}
	settings := plan.Change{Action: plan.ActionCreate, Type: "ConfigPatches.omni.sidero.dev", ID: "settings"}
	renewed := plan.Change{Action: plan.ActionUpdate, Type: plan.TypeMachineSet, ID: "renewed"}
	claim := func(uid, hub string) Claim {
		return Claim{UID: "uid", Hubs: hubs.Hubs{Own: "hub", Previous: "before"}, Live: omni.Live{Exists: true, Marks: omni.Marks{UID: uid, Hub: hub}}}
	}

	for name, test := range map[string]struct {
		claim            Claim
		changes, waiting []plan.Change
		goes             bool // if it is approved
	}{
		"alone":                         {claim("uid", "hub"), nil, nil, true},
		"settings":                      {claim("uid", "hub"), []plan.Change{settings}, nil, true},
		"a list gets shorter":           {claim("uid", "hub"), []plan.Change{fewer}, nil, true},
		"a machine":                     {claim("uid", "hub"), []plan.Change{node}, nil, false},
		"a set":                         {claim("uid", "hub"), []plan.Change{set}, nil, false},
		"more of a class":               {claim("uid", "hub"), []plan.Change{grown}, nil, false},
		"a machine that moves":          {claim("uid", "hub"), nil, []plan.Change{node}, false},
		"a set that comes again":        {claim("uid", "hub"), nil, []plan.Change{renewed}, false},
		"settings that wait":            {claim("uid", "hub"), nil, []plan.Change{settings}, true},
		"a cluster without a mark":      {claim("", ""), nil, nil, false},
		"somebody else's cluster":       {claim("other", "hub"), nil, nil, false},
		"an old mark":                   {claim("uid", ""), nil, nil, false},
		"the mark of the previous hub":  {claim("uid", "before"), nil, nil, false},
		"a destruction that goes along": {claim("uid", "hub"), []plan.Change{begun, node}, nil, false},
	} {
		for _, approved := range []bool{false, true} {
			planned := planned(append(test.changes, goes)...)
			planned.WaitingForOmni = test.waiting
			facts := Facts{Cluster: newCluster(), Claim: test.claim, Plan: planned, NamespaceGoes: true}

			if approved {
				facts.Cluster.Spec.ApprovedPlan = planned.Hash
			}

			d := Decide(facts)
			if got := d.MayDestroy(goes) && d.Admits(goes); got != (test.goes && approved) {
				t.Errorf("%s, approved %v: goes %v", name, approved, got)
			}

			// Nobody is asked for an approval that would be for nothing.
			asks := slices.ContainsFunc(d.PlanStatus().Changes, func(one v1alpha1.PlannedChange) bool { return one.NeedsApproval })
			if reason := d.Outcome().Reason(); asks != (test.goes && !approved) || asks != (reason == v1alpha1.ReasonAwaitingApproval) {
				t.Errorf("%s, approved %v: asks %v, reason %q", name, approved, asks, reason)
			}

			if !d.Admits(begun) {
				t.Errorf("%s, approved %v: what has begun is held", name, approved)
			}
		}
	}
}

// What an on-call engineer reads.
func TestNamespaceGoesMessages(t *testing.T) {
	settings, goes := create("settings"), teardown("goes", time.Unix(0, 0))
	settings.Type = "ConfigPatches.omni.sidero.dev"
	node := plan.Change{Action: plan.ActionCreate, Type: plan.TypeMachineSetNode, ID: "new"}
	alone := "; the namespace is being deleted, and the cluster in Omni is left as it is until the OmniCluster itself is deleted"

	outcome := func(live omni.Live, changes ...plan.Change) string {
		return Decide(Facts{Cluster: newCluster(), Claim: Claim{UID: "uid", Live: live}, Plan: planned(changes...), NamespaceGoes: true}).Outcome().Message()
	}

	for name, test := range map[string]struct{ got, want string }{
		"settings": {outcome(omni.Live{}, settings), "1 to create" + alone},
		"an approval": {
			outcome(omni.Live{}, settings, goes),
			`1 to create, 1 to destroy (1 destructive); these wait for approval: destroy MachineSet "goes" (3 -> none): its namespace is being deleted; ` +
				`1 other is not made, because the namespace is being deleted; ` + howToApprove(newCluster(), plan.HashOf([]plan.Change{goes})),
		},
		"a replacement": {
			outcome(omni.Live{}, node, goes),
			`1 to create, 1 to destroy (1 destructive) (MachineSet "goes")` + alone +
				`, also what is approved: what would take the place of what goes is not made (create MachineSetNode "new")`,
		},
		"no mark": {
			outcome(omni.Live{Exists: true}, goes),
			`1 to destroy (1 destructive) (MachineSet "goes")` + alone +
				`, also what is approved: the cluster in Omni does not carry this object's mark, which is not written any more`,
		},
	} {
		if test.got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, test.got, test.want)
		}
	}
}
