package omnicluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/omni"
)

func TestGate(t *testing.T) {
	for name, test := range map[string]struct {
		gate               gate
		apply, destructive bool
		reason             string // of what is told when that is done
		stalls             bool
	}{
		"nothing to do":                          {gate{}, false, false, "", false},
		"only waiting for Omni":                  {gate{waiting: 2}, false, false, "", false},
		"harmless":                               {gate{changes: 3}, true, false, "", false},
		"destructive, not settled":               {gate{changes: 3, destructive: 1, settlesIn: time.Second}, true, false, "WaitingToSettle", false},
		"destructive, settled":                   {gate{changes: 3, destructive: 1, settled: true}, true, true, "", false},
		"approval does not skip the settle time": {gate{changes: 1, destructive: 1, approved: true}, true, false, "WaitingToSettle", false},

		"confirm: harmless":     {gate{policy: v1alpha1.ChangePolicyConfirmDestructive, changes: 3}, true, false, "", false},
		"confirm: not approved": {gate{policy: v1alpha1.ChangePolicyConfirmDestructive, changes: 3, destructive: 1, settled: true}, true, false, "AwaitingApproval", true},
		"confirm: approved":     {gate{policy: v1alpha1.ChangePolicyConfirmDestructive, changes: 3, destructive: 1, approved: true}, true, true, "", false},

		"unknown policy":           {gate{policy: "Later", changes: 1, destructive: 1, settled: true, approved: true}, true, false, "AwaitingApproval", true},
		"observe":                  {gate{policy: v1alpha1.ChangePolicyObserve, changes: 3}, false, false, "Observing", true},
		"observe, destructive":     {gate{policy: v1alpha1.ChangePolicyObserve, changes: 3, destructive: 3, settled: true, approved: true}, false, false, "Observing", true},
		"observe, nothing to do":   {gate{policy: v1alpha1.ChangePolicyObserve}, false, false, "", false},
		"suspended":                {gate{suspend: true, changes: 3}, false, false, "Suspended", false},
		"suspended, destructive":   {gate{suspend: true, changes: 3, destructive: 3, settled: true, approved: true}, false, false, "Suspended", false},
		"suspended, nothing to do": {gate{suspend: true}, false, false, "", false},
		"suspended and locked":     {gate{suspend: true, locked: true, changes: 1}, false, false, "Suspended", false},
		"locked":                   {gate{locked: true, changes: 1}, false, false, "RemoteLocked", true},
		"locked, settled":          {gate{locked: true, changes: 1, destructive: 1, settled: true}, false, false, "RemoteLocked", true},
		"locked, nothing to do":    {gate{locked: true}, false, false, "RemoteLocked", true},
	} {
		t.Run(name, func(t *testing.T) {
			if test.gate.policy == "" {
				test.gate.policy = v1alpha1.ChangePolicyApply
			}

			got := test.gate.decide()
			if got.Apply != test.apply || got.Destructive != test.destructive {
				t.Errorf("apply %v, destructive %v", got.Apply, got.Destructive)
			}

			if got.After.Reason() != test.reason || got.After.Stalls() != test.stalls {
				t.Errorf("after: %q, stalls %v", got.After.Reason(), got.After.Stalls())
			}
		})
	}
}

// The sum of all gates: nothing destructive ever passes with a suspension, a
// lock, Observe, or without being settled or approved.
func TestGateNeverDestroysByAccident(t *testing.T) {
	policies := []v1alpha1.ChangePolicy{
		"", v1alpha1.ChangePolicyApply, v1alpha1.ChangePolicyConfirmDestructive, v1alpha1.ChangePolicyObserve, "Unknown",
	}

	for bits := range 1 << 4 {
		for _, policy := range policies {
			g := gate{
				suspend: bits&1 != 0, locked: bits&2 != 0, settled: bits&4 != 0, approved: bits&8 != 0,
				policy: policy, changes: 2, destructive: 1,
			}
			allowed := !g.suspend && !g.locked &&
				((policy == "" || policy == v1alpha1.ChangePolicyApply) && g.settled ||
					policy == v1alpha1.ChangePolicyConfirmDestructive && g.approved)

			if got := g.decide().Destructive; got != allowed {
				t.Errorf("%+v: destructive %v", g, got)
			}
		}
	}
}

func planned(changes ...omni.Change) *omni.Plan {
	return &omni.Plan{Cluster: "demo", Changes: changes, Hash: "the-hash"}
}

func teardown(id string, created time.Time) omni.Change {
	return omni.Change{Action: omni.ActionDestroy, Type: "MachineSets.omni.sidero.dev", ID: id, Destructive: true, Created: created, OldSize: "3"}
}

func TestApprove(t *testing.T) {
	created := time.Unix(1700000000, 123456789)
	a, b := teardown("a", created), teardown("b", created)
	begun := b
	begun.TearingDown = true
	again := teardown("a", created.Add(time.Hour))

	approvalA := v1alpha1.ApprovedChange{
		Type: "MachineSets.omni.sidero.dev", ID: "a", OldSize: "3", Created: &metav1.Time{Time: time.Unix(1700000000, 0).UTC()},
	}
	approvalB := approvalA
	approvalB.ID = "b"

	for name, test := range map[string]struct {
		approvedPlan string
		plan         *omni.Plan
		remembered   []v1alpha1.ApprovedChange
		approved     bool
		remember     []v1alpha1.ApprovedChange
	}{
		"nothing destructive":              {"", planned(), nil, false, nil},
		"not approved":                     {"", planned(a), nil, false, nil},
		"another plan was approved":        {"other", planned(a), nil, false, nil},
		"approved":                         {"the-hash", planned(a, b), nil, true, []v1alpha1.ApprovedChange{approvalA, approvalB}},
		"what is left of an approved plan": {"older", planned(a, begun), []v1alpha1.ApprovedChange{approvalA, approvalB}, true, []v1alpha1.ApprovedChange{approvalA, approvalB}},
		"what is done is forgotten":        {"older", planned(a), []v1alpha1.ApprovedChange{approvalA, approvalB}, true, []v1alpha1.ApprovedChange{approvalA}},
		"all done":                         {"older", planned(), []v1alpha1.ApprovedChange{approvalA, approvalB}, false, nil},
		"something new":                    {"older", planned(a, b), []v1alpha1.ApprovedChange{approvalA}, false, []v1alpha1.ApprovedChange{approvalA}},
		"made again since":                 {"older", planned(again), []v1alpha1.ApprovedChange{approvalA}, false, nil},
		"an empty approval approves nothing": {
			"", &omni.Plan{Changes: []omni.Change{a}}, nil, false, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			approved, remember := approve(test.approvedPlan, test.plan, test.remembered)
			if approved != test.approved {
				t.Errorf("approved: %v", approved)
			}

			if diff := cmp.Diff(test.remember, remember); diff != "" {
				t.Error(diff)
			}
		})
	}
}
