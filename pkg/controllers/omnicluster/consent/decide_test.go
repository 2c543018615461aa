package consent

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

func TestGate(t *testing.T) {
	asked, whyUntrusted := teardown("asked", time.Unix(0, 0)), teardown("whyUntrusted", time.Unix(0, 0))
	one := destructive{asked: []plan.Change{asked}}
	confirm := destructive{whyUntrusted: []plan.Change{whyUntrusted}}
	both := destructive{asked: []plan.Change{asked}, whyUntrusted: []plan.Change{whyUntrusted}}

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

		"whyUntrusted, not approved":       {gate{changes: 3, destructive: confirm, settled: true}, true, nil, "AwaitingApproval", true},
		"whyUntrusted, approved":           {gate{changes: 3, destructive: confirm, approved: true}, true, []string{"whyUntrusted"}, "", false},
		"both, neither settled nor agreed": {gate{changes: 3, destructive: both}, true, nil, "WaitingToSettle", false},
		"both, settled":                    {gate{changes: 3, destructive: both, settled: true}, true, []string{"asked"}, "AwaitingApproval", true},
		"both, approved":                   {gate{changes: 3, destructive: both, approved: true}, true, []string{"whyUntrusted"}, "WaitingToSettle", false},
		"both, settled and approved":       {gate{changes: 3, destructive: both, settled: true, approved: true}, true, []string{"whyUntrusted", "asked"}, "", false},

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
			if diff := gocmp.Diff(test.destroy, ids(got.Destroys())); diff != "" || got.HasChangesToTry() != test.apply {
				t.Errorf("apply %v, destroy %s", got.HasChangesToTry(), diff)
			}

			if outcome := got.Outcome(); outcome.Reason() != test.reason || outcome.Stalls() != test.stalls {
				t.Errorf("outcome: %q, stalls %v", outcome.Reason(), outcome.Stalls())
			}
		})
	}
}

// settles is what a message says of changes that settle in a second, in the first second of all.
const settles = `begin at 0001-01-01T00:00:01Z if nothing changes before; to stop them: ` +
	`kubectl patch omnicluster demo -n team --field-manager=by-hand --type=merge -p '{"spec":{"suspend":true}}'`

// gate are facts of which nothing has to be worked out, and the items that they are
// about.
type gate struct {
	suspend, locked bool
	policy          v1alpha1.ChangePolicy
	// changes and waiting are how many there are at least.
	changes, waiting int
	destructive
	settled   bool
	settlesIn time.Duration
	approved  bool
}

// destructive are the destructive changes, by what they need.
type destructive struct {
	asked, whyUntrusted []plan.Change
}

// decide is Decide for such facts.
func (g gate) decide() Decision {
	var items []Item

	for _, change := range g.whyUntrusted {
		items = append(items, Item{Change: change, Needs: NeedsApproval})
	}

	for _, change := range g.asked {
		items = append(items, Item{Change: change, Needs: NeedsSettling})
	}

	for len(items) < g.changes {
		items = append(items, Item{Change: plan.Change{Action: plan.ActionCreate, Type: "ConfigPatches.omni.sidero.dev", ID: fmt.Sprint(len(items))}})
	}

	return g.decideItems(items)
}

// decideItems is decide for items that were made elsewhere, and for some that wait.
func (g gate) decideItems(items []Item) Decision {
	planned := &plan.Plan{Changes: changesIn(items)}

	for range g.waiting {
		item := Item{Change: plan.Change{Action: plan.ActionUpdate, Type: "ConfigPatches.omni.sidero.dev", ID: "waits"}, State: Held, Hold: HoldOmni}
		planned.WaitingForOmni = append(planned.WaitingForOmni, item.Change)
		items = append(items, item)
	}

	cluster := newCluster()
	cluster.Spec.Suspend, cluster.Spec.ChangePolicy = g.suspend, g.policy
	facts := Facts{Cluster: cluster, Claim: Claim{Live: omni.Live{Locked: g.locked}}, Plan: planned, SettleTime: g.settlesIn}

	return Decision{
		Items: items, facts: facts, holdOfAll: facts.holdOfAll(), allSettled: g.settled, allApproved: g.approved,
		Settling: Settling{keys: []string{"one"}, settled: g.settled},
	}.withStates()
}

func newCluster() *v1alpha1.OmniCluster {
	return &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "demo", UID: "uid-demo"}}
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
// the cluster is nobody else's, and what lacks its replacement.
func TestGateNeverDestroysByAccident(t *testing.T) {
	policies := []v1alpha1.ChangePolicy{
		"", v1alpha1.ChangePolicyApply, v1alpha1.ChangePolicyConfirmDestructive, v1alpha1.ChangePolicyObserve, "Unknown",
	}
	ours, theirs, lacking := teardown("ours", time.Unix(0, 0)), teardown("theirs", time.Unix(0, 0)), teardown("lacking", time.Unix(0, 0))
	lacking.Lacks = "machine m is not registered in Omni"
	planned := planned(ours, theirs, lacking)
	record := Record{sets: appliedRecord{{ID: "lacking", Size: "3"}, {ID: "ours", Size: "3"}}}
	planned.Live = []plan.SetState{{ID: "lacking", Size: "3"}, {ID: "ours", Size: "3"}, {ID: "theirs", Size: "3"}}

	for bits := range 1 << 5 {
		for _, policy := range policies {
			adopting := bits&16 != 0
			g := gate{
				suspend: bits&1 != 0, locked: bits&2 != 0, settled: bits&4 != 0, approved: bits&8 != 0,
				policy: policy,
			}
			writes := !g.suspend && !g.locked && policy != v1alpha1.ChangePolicyObserve
			trusts := (policy == "" || policy == v1alpha1.ChangePolicyApply) && !adopting
			whyUntrusted := ""
			if adopting {
				whyUntrusted = "the cluster is being adopted"
			}

			got := g.decideItems(itemsOf(planned, record, policy, whyUntrusted))

			if want := writes && (trusts && g.settled || !trusts && g.approved); got.MayDestroy(ours) != want {
				t.Errorf("%+v: ours %v", g, !want)
			}

			if want := writes && g.approved; got.MayDestroy(theirs) != want {
				t.Errorf("%+v: theirs %v", g, !want)
			}

			if want := writes && g.approved; got.MayDestroy(lacking) != want {
				t.Errorf("%+v: lacking %v", g, !want)
			}
		}
	}
}

// What an on-call engineer reads.
func TestGateMessages(t *testing.T) {
	ours, theirs := teardown("demo-a", time.Unix(0, 0)), teardown("demo-b", time.Unix(0, 0))
	planned := planned(
		plan.Change{Action: plan.ActionCreate, Type: "ConfigPatches.omni.sidero.dev", ID: "new"},
		plan.Change{Action: plan.ActionUpdate, Type: "Clusters.omni.sidero.dev", ID: "demo"}, ours, theirs)
	planned.Live = []plan.SetState{{ID: "demo-a", Size: "pool/3"}, {ID: "demo-b"}}
	record := Record{sets: appliedRecord{{ID: "demo-a", Size: "pool/3"}}}
	hash := plan.HashOf([]plan.Change{theirs})
	command := `read status.plan, then approve it: kubectl patch omnicluster demo -n team --field-manager=by-hand --type=merge -p '{"spec":{"approvedPlan":"` + hash + `"}}'`
	items := itemsOf(planned, record, v1alpha1.ChangePolicyApply, "")
	g := gate{waiting: 1, settled: true}

	if got, want := g.decideItems(items).Outcome().Message(),
		`1 to create, 1 to update, 2 to destroy, 1 waiting for Omni (2 destructive); these wait for approval: destroy MachineSet "demo-b" (3 -> none): not made by this object; `+command; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	g.settled, g.settlesIn = false, time.Second

	if got, want := g.decideItems(items).Outcome().Message(),
		`1 to create, 1 to update, 2 to destroy, 1 waiting for Omni (2 destructive); those that were asked for `+settles+`; `+
			`these wait for approval: destroy MachineSet "demo-b" (3 -> none): not made by this object; `+command; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	g.approved = true

	if got, want := g.decideItems(items).Outcome().Message(),
		`1 to create, 1 to update, 2 to destroy, 1 waiting for Omni (2 destructive) (MachineSet "demo-b", MachineSet "demo-a"); `+
			`those that destroy `+settles; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	cluster := newCluster()
	cluster.Spec.ApprovedPlan = "0123456789abcdef0123"

	if got, want := howToApprove(cluster, hash),
		"spec.approvedPlan (0123456789ab...) approves another plan, the current one is "+hash+"; "+command; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	cluster.Spec.ApprovedPlan = hash

	if got := howToApprove(cluster, hash); got != command {
		t.Errorf("got  %s", got)
	}
}

// What is missing comes first, and once, whatever waits for it.
func TestMessageOfWhatIsMissing(t *testing.T) {
	first, second := teardown("demo-a", time.Unix(0, 0)), teardown("demo-b", time.Unix(0, 0))
	first.Lacks = `machine m is not registered in Omni, and MachineSet "demo-new" lists it`
	second.Lacks = first.Lacks
	made := planned(first, second)
	record := Record{sets: appliedRecord{{ID: "demo-a"}, {ID: "demo-b"}}}
	hash := plan.HashOf(made.Changes)
	command := `read status.plan, then approve it: kubectl patch omnicluster demo -n team --field-manager=by-hand --type=merge -p '{"spec":{"approvedPlan":"` + hash + `"}}'`
	missing := `machine m is not registered in Omni, and MachineSet "demo-new" lists it: nothing leaves for it. ` +
		`Correct the list, or have the machine come, and the change goes on by itself. `

	for name, test := range map[string]struct {
		gate gate
		want string
	}{
		"waits":    {gate{}, missing + `2 to destroy (2 destructive); these wait for approval: destroy MachineSet "demo-a" (3 -> none); destroy MachineSet "demo-b" (3 -> none); ` + command},
		"approved": {gate{approved: true}, ""},
		"to be confirmed": {
			gate{policy: v1alpha1.ChangePolicyConfirmDestructive},
			missing + `2 to destroy (2 destructive); these wait for approval: destroy MachineSet "demo-a" (3 -> none); destroy MachineSet "demo-b" (3 -> none); ` + command,
		},
	} {
		policy := cmp.Or(test.gate.policy, v1alpha1.ChangePolicyApply)
		if got := test.gate.decideItems(itemsOf(made, record, policy, "")).Outcome().Message(); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, test.want)
		}
	}
}

// Settings of a machine whose document is gone: the first deletion of a prune looks the same. They wait for the settle time under
// every policy that writes, and for no approval.
func TestSettingsOfAMachineWhoseDocumentIsGone(t *testing.T) {
	lost := plan.Change{Action: plan.ActionDestroy, Type: "ConfigPatches.omni.sidero.dev", ID: "400-cm-m-net", DocumentGone: true}
	begun := lost
	begun.TearingDown = true

	for name, test := range map[string]struct {
		change  plan.Change
		gate    gate
		reason  string
		destroy []string
	}{
		"not settled":                       {lost, gate{settlesIn: time.Second}, "WaitingToSettle", nil},
		"settled":                           {lost, gate{settled: true}, "", []string{lost.ID}},
		"to be confirmed, not settled":      {lost, gate{policy: v1alpha1.ChangePolicyConfirmDestructive, settlesIn: time.Second}, "WaitingToSettle", nil},
		"to be confirmed, settled":          {lost, gate{policy: v1alpha1.ChangePolicyConfirmDestructive, settled: true}, "", []string{lost.ID}},
		"an approval settles nothing":       {lost, gate{approved: true, settlesIn: time.Second}, "WaitingToSettle", nil},
		"suspended":                         {lost, gate{suspend: true, settled: true}, "Suspended", nil},
		"observed":                          {lost, gate{policy: v1alpha1.ChangePolicyObserve, settled: true}, "Observing", nil},
		"begun":                             {begun, gate{}, "", nil},
		"beside a set that waits, settled":  {lost, gate{settled: true}, "AwaitingApproval", []string{lost.ID}},
		"beside a set that waits, not that": {lost, gate{settlesIn: time.Second}, "WaitingToSettle", nil},
	} {
		t.Run(name, func(t *testing.T) {
			made := planned(test.change)
			if strings.HasPrefix(name, "beside") {
				made = planned(test.change, teardown("theirs", time.Unix(0, 0)))
			}

			policy := cmp.Or(test.gate.policy, v1alpha1.ChangePolicyApply)
			d := test.gate.decideItems(itemsOf(made, Record{}, policy, ""))

			if diff := gocmp.Diff(test.destroy, ids(d.Destroys())); diff != "" {
				t.Errorf("may be made: %s", diff)
			}

			if outcome := d.Outcome(); outcome.Reason() != test.reason {
				t.Errorf("%s: %s", outcome.Reason(), outcome.Message())
			}

			if d.asksForApproval(d.Items[0]) {
				t.Error("it asks for an approval")
			}
		})
	}

	d := gate{settlesIn: time.Second}.decideItems(itemsOf(planned(lost), Record{}, v1alpha1.ChangePolicyApply, ""))
	if got, want := d.Outcome().Message(), `1 to destroy (ConfigPatch "400-cm-m-net"); those that destroy `+settles; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// What waits for something else than approval does not need it.
func TestNeedsApproval(t *testing.T) {
	waits, ours := teardown("w", time.Unix(0, 0)), teardown("ours", time.Unix(0, 0))
	begun := waits
	begun.TearingDown = true
	record := Record{sets: appliedRecord{{ID: "ours"}}}

	for name, test := range map[string]struct {
		change plan.Change
		gate   gate
		want   bool
	}{
		"waits":           {waits, gate{}, true},
		"has it":          {waits, gate{approved: true}, false},
		"only observed":   {waits, gate{policy: v1alpha1.ChangePolicyObserve}, false},
		"suspended":       {waits, gate{suspend: true}, true},
		"begun":           {begun, gate{}, false},
		"asked for":       {ours, gate{}, false},
		"not destructive": {plan.Change{Action: plan.ActionCreate}, gate{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := test.gate.decideItems(itemsOf(planned(test.change), record, v1alpha1.ChangePolicyApply, ""))
			if got := d.asksForApproval(d.Items[0]); got != test.want {
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
