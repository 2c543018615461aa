package omnicluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

func TestGate(t *testing.T) {
	asked, unasked := teardown("asked", time.Unix(0, 0)), teardown("unasked", time.Unix(0, 0))
	one := destructive{asked: []plan.Change{asked}}
	confirm := destructive{unasked: []plan.Change{unasked}}
	both := destructive{asked: []plan.Change{asked}, unasked: []plan.Change{unasked}}

	for name, test := range map[string]struct {
		gate    gate
		apply   bool
		destroy []string
		reason  string // of what is told when that is done
		stalls  bool
	}{
		"nothing to do":            {gate{}, false, nil, "", false},
		"only waiting for Omni":    {gate{waiting: 2}, false, nil, "", false},
		"harmless":                 {gate{changes: 3}, true, nil, "", false},
		"asked for, not settled":   {gate{changes: 3, destructive: one, settlesIn: time.Second}, true, nil, "WaitingToSettle", false},
		"asked for, settled":       {gate{changes: 3, destructive: one, settled: true}, true, []string{"asked"}, "", false},
		"an approval settles none": {gate{changes: 1, destructive: one, approved: true}, true, nil, "WaitingToSettle", false},

		"unasked, not approved":            {gate{changes: 3, destructive: confirm, settled: true}, true, nil, "AwaitingApproval", true},
		"unasked, approved":                {gate{changes: 3, destructive: confirm, approved: true}, true, []string{"unasked"}, "", false},
		"both, neither settled nor agreed": {gate{changes: 3, destructive: both}, true, nil, "WaitingToSettle", false},
		"both, settled":                    {gate{changes: 3, destructive: both, settled: true}, true, []string{"asked"}, "AwaitingApproval", true},
		"both, approved":                   {gate{changes: 3, destructive: both, approved: true}, true, []string{"unasked"}, "WaitingToSettle", false},
		"both, settled and approved":       {gate{changes: 3, destructive: both, settled: true, approved: true}, true, []string{"unasked", "asked"}, "", false},

		"observe":                  {gate{policy: v1alpha1.ChangePolicyObserve, changes: 3}, false, nil, "Observing", true},
		"observe, destructive":     {gate{policy: v1alpha1.ChangePolicyObserve, changes: 3, destructive: both, settled: true, approved: true}, false, nil, "Observing", true},
		"observe, nothing to do":   {gate{policy: v1alpha1.ChangePolicyObserve}, false, nil, "", false},
		"suspended":                {gate{suspend: true, changes: 3}, false, nil, "Suspended", false},
		"suspended, destructive":   {gate{suspend: true, changes: 3, destructive: both, settled: true, approved: true}, false, nil, "Suspended", false},
		"suspended, nothing to do": {gate{suspend: true}, false, nil, "", false},
		"suspended and locked":     {gate{suspend: true, locked: true, changes: 1}, false, nil, "Suspended", false},
		"locked":                   {gate{locked: true, changes: 1}, false, nil, "RemoteLocked", true},
		"locked, settled":          {gate{locked: true, changes: 1, destructive: both, settled: true, approved: true}, false, nil, "RemoteLocked", true},
		"locked, nothing to do":    {gate{locked: true}, false, nil, "RemoteLocked", true},
	} {
		t.Run(name, func(t *testing.T) {
			if test.gate.policy == "" {
				test.gate.policy = v1alpha1.ChangePolicyApply
			}

			got := test.gate.decide()
			if diff := cmp.Diff(test.destroy, ids(got.Destroy)); diff != "" || got.Apply != test.apply {
				t.Errorf("apply %v, destroy %s", got.Apply, diff)
			}

			if got.After.Reason() != test.reason || got.After.Stalls() != test.stalls {
				t.Errorf("after: %q, stalls %v", got.After.Reason(), got.After.Stalls())
			}
		})
	}
}

func ids(changes []plan.Change) []string {
	var all []string
	for _, change := range changes {
		all = append(all, change.ID)
	}

	return all
}

// The sum of all gates: nothing destructive ever passes with a suspension, a
// lock or Observe; nothing asked for without being settled, and nothing else
// without being approved, which is everything unless the policy is Apply and
// the cluster is nobody else's.
func TestGateNeverDestroysByAccident(t *testing.T) {
	policies := []v1alpha1.ChangePolicy{
		"", v1alpha1.ChangePolicyApply, v1alpha1.ChangePolicyConfirmDestructive, v1alpha1.ChangePolicyObserve, "Unknown",
	}
	ours, theirs := teardown("ours", time.Unix(0, 0)), teardown("theirs", time.Unix(0, 0))
	planned := planned(ours, theirs)
	record := known{sets: appliedRecord{{ID: "ours", Size: "3"}}}
	planned.Live = []plan.SetState{{ID: "ours", Size: "3"}, {ID: "theirs", Size: "3"}}

	for bits := range 1 << 5 {
		for _, policy := range policies {
			adopting := bits&16 != 0
			g := gate{
				suspend: bits&1 != 0, locked: bits&2 != 0, settled: bits&4 != 0, approved: bits&8 != 0,
				policy: policy, changes: 2, destructive: sortDestructive(planned, record, policy, adopting),
			}
			writes := !g.suspend && !g.locked && policy != v1alpha1.ChangePolicyObserve
			trusts := (policy == "" || policy == v1alpha1.ChangePolicyApply) && !adopting
			got := g.decide()

			if want := writes && (trusts && g.settled || !trusts && g.approved); got.allows(ours) != want {
				t.Errorf("%+v: ours %v", g, !want)
			}

			if want := writes && g.approved; got.allows(theirs) != want {
				t.Errorf("%+v: theirs %v", g, !want)
			}
		}
	}
}

// What an on-call engineer reads.
func TestGateMessages(t *testing.T) {
	ours, theirs := teardown("demo-a", time.Unix(0, 0)), teardown("demo-b", time.Unix(0, 0))
	planned := planned(ours, theirs)
	planned.Live = []plan.SetState{{ID: "demo-a", Size: "pool/3"}, {ID: "demo-b"}}
	record := known{sets: appliedRecord{{ID: "demo-a", Size: "pool/3"}}}
	cluster := newCluster()
	command := `read status.plan, then approve it: kubectl patch omnicluster demo -n team --type=merge -p '{"spec":{"approvedPlan":"the-hash"}}'`

	g := gate{changes: 4, waiting: 1, planned: "1 to create, 1 to update, 2 to destroy, 1 waiting for Omni", destructive: sortDestructive(planned, record, v1alpha1.ChangePolicyApply, false), settled: true, ask: howToApprove(cluster, "the-hash")}

	if got, want := g.decide().After.Message(),
		`1 to create, 1 to update, 2 to destroy, 1 waiting for Omni (2 destructive); these wait for approval: destroy MachineSet "demo-b" (3 -> none): not made by this object; `+command; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	g.settled, g.settlesIn = false, time.Second

	if got, want := g.decide().After.Message(),
		`1 to create, 1 to update, 2 to destroy, 1 waiting for Omni (2 destructive); those that were asked for wait until they have not changed for the settle time; `+
			`these wait for approval: destroy MachineSet "demo-b" (3 -> none): not made by this object; `+command; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	cluster.Spec.ApprovedPlan = "0123456789abcdef0123"

	if got, want := howToApprove(cluster, "the-hash"),
		"spec.approvedPlan (0123456789ab...) approves another plan, the current one is the-hash; "+command; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	cluster.Spec.ApprovedPlan = "the-hash"

	if got := howToApprove(cluster, "the-hash"); got != command {
		t.Errorf("got  %s", got)
	}
}

// What waits for something else than approval does not need it.
func TestNeedsApproval(t *testing.T) {
	waits := teardown("w", time.Unix(0, 0))
	begun, other := waits, waits
	begun.TearingDown, other.ID = true, "other"
	needs := needsApproval(&scope{unasked: []plan.Change{waits}})

	for name, test := range map[string]struct {
		change plan.Change
		want   bool
	}{
		"waits":                 {waits, true},
		"begun":                 {begun, false},
		"another, or asked for": {other, false},
		"not destructive":       {plan.Change{Action: plan.ActionCreate}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := needs(test.change); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func planned(changes ...plan.Change) *plan.Plan {
	return &plan.Plan{Cluster: "demo", Changes: changes, Hash: "the-hash"}
}

func teardown(id string, created time.Time) plan.Change {
	return plan.Change{Action: plan.ActionDestroy, Type: "MachineSets.omni.sidero.dev", ID: id, Set: id, Destructive: true, Created: created, OldSize: "3"}
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
		plan         *plan.Plan
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
			"", &plan.Plan{Changes: []plan.Change{a}}, nil, false, nil,
		},
		"taken back": {"", planned(a, b), []v1alpha1.ApprovedChange{approvalA, approvalB}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			approved, remember := approve(test.approvedPlan, test.plan, test.plan.Destructive(), test.remembered)
			if approved != test.approved {
				t.Errorf("approved: %v", approved)
			}

			if diff := cmp.Diff(test.remember, remember); diff != "" {
				t.Error(diff)
			}
		})
	}
}
