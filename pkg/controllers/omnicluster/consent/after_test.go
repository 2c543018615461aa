package consent

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// states are the items of a decision, as "ID: state (hold)".
func states(d Decision) []string {
	var all []string
	for _, item := range d.Items {
		all = append(all, fmt.Sprintf("%s: %s (%s)", item.Change.ID, item.State, item.Hold))
	}

	return all
}

func create(id string) plan.Change {
	return plan.Change{Action: plan.ActionCreate, Type: "ConfigPatches.omni.sidero.dev", ID: id}
}

// Every change of a plan has one state after an Apply, and the filters agree with it.
func TestAfter(t *testing.T) {
	theirs, going, begun := teardown("theirs", time.Unix(0, 0)), teardown("going", time.Unix(0, 0)), teardown("begun", time.Unix(0, 0))
	begun.TearingDown = true

	made, another, late, refused, failed, forgotten := create("made"), create("another"), create("late"), create("refused"), create("failed"), create("forgotten")
	planned := planned(made, another, late, refused, failed, forgotten, theirs, going, begun)
	planned.Live = []plan.SetState{{ID: "going", Size: "3"}}
	planned.WaitingForOmni = []plan.Change{create("waits")}
	cluster := newCluster()
	cluster.Status.AppliedMachineSets = []v1alpha1.AppliedMachineSet{{ID: "going", Size: "3"}}

	d := Decide(Facts{Cluster: cluster, Plan: planned})
	if diff := cmp.Diff([]string{
		"made: planned ()", "another: planned ()", "late: planned ()", "refused: planned ()", "failed: planned ()", "forgotten: planned ()",
		"theirs: held (an approval)", "going: held (the settle time)", "begun: planned ()", "waits: held (Omni)",
	}, states(d)); diff != "" {
		t.Fatal(diff)
	}

	if got, want := d.Left(), append(planned.Changes[:9:9], planned.WaitingForOmni...); cmp.Diff(want, got) != "" {
		t.Error(cmp.Diff(want, got))
	}

	if diff := cmp.Diff(ids(planned.Changes), ids(d.Unconsented())); diff != "" {
		t.Error(diff)
	}

	refusal, failure := &plan.ChangeError{Change: refused}, &plan.ChangeError{Change: failed}
	result := plan.Result{
		Applied: []plan.Change{made}, Pending: []plan.Change{going, begun}, Requested: []plan.Change{going}, Held: []plan.Change{theirs, another},
		Refused: []*plan.ChangeError{refusal}, Skipped: []plan.Change{late},
	}
	d = d.After(result, failure)

	if diff := cmp.Diff([]string{
		"made: done ()", "another: held (another change that is held)", "late: held (another change that was refused, failed, or is not over)",
		"refused: held (Omni refused it)", "failed: held (it failed)", "forgotten: planned ()",
		"theirs: held (an approval)", "going: requested (Omni)", "begun: requested (Omni)", "waits: held (Omni)",
	}, states(d)); diff != "" {
		t.Error(diff)
	}

	for name, test := range map[string]struct {
		got  []plan.Change
		want []string
	}{
		"left":      {d.Left(), []string{"another", "forgotten", "theirs", "late", "going", "begun", "waits", "refused", "failed"}},
		"done":      {d.Done(), []string{"made"}},
		"untried":   {d.Untried(), []string{"late"}},
		"leaving":   {d.Leaving(), []string{"going", "begun", "late"}},
		"held back": {d.Unconsented(), []string{"another", "forgotten", "theirs"}},
		"for Omni":  {d.WaitingForOmni(), []string{"waits"}},
		"taken":     {result.Taken(), []string{"going", "made"}},
	} {
		if diff := cmp.Diff(test.want, ids(test.got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}

	if got := d.Hash(); got != plan.HashOf([]plan.Change{theirs}) {
		t.Errorf("the hash is %q", got)
	}
}

// A change of which an Apply says two things is not done.
func TestAfterCountsTheSaferWord(t *testing.T) {
	one := teardown("one", time.Unix(0, 0))

	for name, result := range map[string]plan.Result{
		"held":    {Applied: []plan.Change{one}, Held: []plan.Change{one}},
		"skipped": {Applied: []plan.Change{one}, Skipped: []plan.Change{one}},
		"pending": {Applied: []plan.Change{one}, Pending: []plan.Change{one}},
		"refused": {Applied: []plan.Change{one}, Refused: []*plan.ChangeError{{Change: one}}},
	} {
		if d := Decide(Facts{Cluster: newCluster(), Plan: planned(one)}).After(result, nil); len(d.Left()) != 1 || len(d.Done()) != 0 {
			t.Errorf("%s: %v", name, states(d))
		}
	}
}

// The refusal that ends an Apply is no failure: everything else was tried.
func TestAfterARefusal(t *testing.T) {
	refusal := &plan.ChangeError{Change: create("refused")}

	d := Decide(Facts{Cluster: newCluster(), Plan: planned(refusal.Change)}).After(plan.Result{Refused: []*plan.ChangeError{refusal}}, refusal)
	if diff := cmp.Diff([]string{"refused: held (Omni refused it)"}, states(d)); diff != "" {
		t.Error(diff)
	}
}

func TestIsRefusal(t *testing.T) {
	refusal, failure := &plan.ChangeError{Change: create("a")}, &plan.ChangeError{Change: create("b")}
	result := plan.Result{Refused: []*plan.ChangeError{refusal}}

	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"none":             {nil, false},
		"the refusal":      {refusal, true},
		"another failure":  {failure, false},
		"what is no step":  {errors.New("interrupted"), false},
		"wrapped by us":    {fmt.Errorf("apply: %w", refusal), true},
		"wrapped, another": {fmt.Errorf("apply: %w", failure), false},
	} {
		if got := IsRefusal(result, test.err); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What the facts of a whole plan make of it, and whether the record may grow by it.
func TestWholePlan(t *testing.T) {
	locked := Claim{Live: omni.Live{Locked: true}}
	some, none := planned(create("a")), planned()

	for name, test := range map[string]struct {
		edit           func(*v1alpha1.OmniCluster)
		facts          Facts
		stop           Hold
		tried, follows bool // before anything is applied
	}{
		"changes":                   {nil, Facts{Plan: some}, HoldNone, false, false},
		"none":                      {nil, Facts{Plan: none}, HoldNone, true, true},
		"locked":                    {nil, Facts{Plan: some, Claim: locked}, HoldLocked, true, false},
		"suspended":                 {func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = true }, Facts{Plan: some}, HoldSuspended, true, false},
		"suspended, none":           {func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = true }, Facts{Plan: none}, HoldSuspended, true, false},
		"observed":                  {func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = v1alpha1.ChangePolicyObserve }, Facts{Plan: some}, HoldObserved, true, false},
		"second writer":             {nil, Facts{Plan: some, SecondWriter: "somebody"}, HoldSecondWriter, false, false},
		"second writer, none":       {nil, Facts{Plan: none, SecondWriter: "somebody"}, HoldSecondWriter, false, false},
		"second writer, suspended":  {func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = true }, Facts{Plan: some, SecondWriter: "somebody"}, HoldSecondWriter, false, false},
		"second writer, and locked": {nil, Facts{Plan: some, Claim: locked, SecondWriter: "somebody"}, HoldSecondWriter, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			test.facts.Cluster = newCluster()
			if test.edit != nil {
				test.edit(test.facts.Cluster)
			}

			d := Decide(test.facts)
			if d.holdOfAll != test.stop || d.Tried() != test.tried || d.Follows() != test.follows {
				t.Errorf("stop %q, tried %v, follows %v", d.holdOfAll, d.Tried(), d.Follows())
			}

			if got := d.Outcome().Reason(); (got == v1alpha1.ReasonSecondWriter) != (test.stop == HoldSecondWriter) {
				t.Errorf("reason %q", got)
			}

			if d.HasChangesToTry() != (test.stop == HoldNone && len(test.facts.Plan.Changes) > 0) {
				t.Errorf("may apply: %v", d.HasChangesToTry())
			}
		})
	}

	if d := Decide(Facts{Cluster: newCluster(), Plan: some}).After(plan.Result{Applied: some.Changes}, nil); !d.Tried() || !d.Follows() {
		t.Error("applied, and not tried")
	}
}

// In a namespace that goes, what destroys waits for its approval, what has begun is finished, and the rest is left alone.
func TestNamespaceGoes(t *testing.T) {
	settings, set, begun := create("settings"), teardown("set", time.Unix(0, 0)), teardown("begun", time.Unix(0, 0))
	settings.Action, begun.TearingDown = plan.ActionDestroy, true
	patch, lost := settings, settings
	patch.ID, patch.TearingDown = "patch", true
	lost.ID, lost.DocumentGone = "lost", true

	for name, test := range map[string]struct {
		changes  []plan.Change
		approved bool
		admits   []string
		reason   string
	}{
		"settings":              {[]plan.Change{settings}, false, nil, "NamespaceDeleting"},
		"a set":                 {[]plan.Change{settings, set}, false, []string{"set"}, "AwaitingApproval"},
		"lost, and a set":       {[]plan.Change{lost, set}, false, []string{"set"}, "AwaitingApproval"},
		"a set, approved":       {[]plan.Change{settings, set}, true, []string{"set"}, "NamespaceDeleting"},
		"an approved set alone": {[]plan.Change{set}, true, []string{"set"}, ""},
		"what has begun":        {[]plan.Change{settings, begun, patch}, false, []string{"begun", "patch"}, "NamespaceDeleting"},
		"nothing":               {nil, false, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			facts := Facts{Cluster: newCluster(), Plan: planned(test.changes...), NamespaceGoes: true}
			if test.approved {
				facts.Cluster.Spec.ApprovedPlan = facts.Plan.Hash
			}

			d := Decide(facts)
			admits := slices.DeleteFunc(slices.Clone(test.changes), func(change plan.Change) bool { return !d.Admits(change) })

			if got := d.Outcome().Reason(); got != test.reason || d.Follows() || d.HasChangesToTry() != (len(test.admits) > 0) {
				t.Errorf("reason %q, follows %v, may apply %v", got, d.Follows(), d.HasChangesToTry())
			}

			if diff := cmp.Diff(test.admits, ids(admits)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Neither a suspension nor a second writer lets the settle time go on.
func TestSettleTimeBeginsAnew(t *testing.T) {
	begin := time.Unix(1000, 0)
	facts := func(after time.Duration, before Settling) Facts {
		cluster := newCluster()
		cluster.Status.AppliedMachineSets = []v1alpha1.AppliedMachineSet{{ID: "w", Size: "3"}}

		return Facts{Cluster: cluster, Plan: planned(teardown("w", begin)), Settling: before, SettleTime: time.Minute, Now: begin.Add(after)}
	}

	first := Decide(facts(0, Settling{}))
	if second := Decide(facts(time.Minute, first.Settling)); len(second.Destroys()) != 1 {
		t.Error("it never settles")
	}

	for name, hold := range map[string]func(*Facts){
		"suspended":     func(f *Facts) { f.Cluster.Spec.Suspend = true },
		"second writer": func(f *Facts) { f.SecondWriter = "somebody" },
	} {
		held := facts(time.Second, first.Settling)
		hold(&held)

		if d := Decide(held); len(d.Settling.keys) != 0 || len(d.Destroys()) != 0 {
			t.Errorf("%s: %+v", name, d.Settling)
		}
	}
}

// Whatever the documents and the record say, nothing settles that no document is enough for.
func TestUntrustedDocumentsDestroyNothing(t *testing.T) {
	ours := teardown("ours", time.Unix(0, 0))
	again := plan.Change{Action: plan.ActionCreate, Type: ours.Type, ID: ours.ID}

	for name, test := range map[string]struct {
		facts    Facts
		destroys bool
		why      string
	}{
		"trusted":                   {Facts{}, true, ""},
		"being adopted":             {Facts{Adopting: true}, false, "the cluster is being adopted"},
		"the namespace is unknown":  {Facts{NamespaceUnknown: "not read yet"}, false, "not read yet"},
		"the namespace goes":        {Facts{NamespaceGoes: true}, false, "its namespace is being deleted"},
		"adopted in one that goes":  {Facts{Adopting: true, NamespaceGoes: true}, false, "the cluster is being adopted"},
		"goes, and is unknown, too": {Facts{NamespaceGoes: true, NamespaceUnknown: "not read yet"}, false, "its namespace is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			f := test.facts
			f.Cluster, f.Plan = newCluster(), planned(ours, again)
			f.Cluster.Status.Endpoint = "https://a"
			f.Cluster.Status.Adopting = f.Adopting
			f.Cluster.Status.AppliedMachineSets = []v1alpha1.AppliedMachineSet{{ID: "ours", Size: "3"}}
			f.Settling = Settling{uid: f.Cluster.UID, keys: []string{ours.Key()}, settled: true}

			d := Decide(f)
			if d.MayDestroy(ours) != test.destroys || d.Items[0].WhyApproval != test.why {
				t.Errorf("destroys %v: %q", d.MayDestroy(ours), d.Items[0].WhyApproval)
			}

			if d.MayDestroy(again) {
				t.Error("what makes it again counts as what destroys it")
			}

			// What settled is no approval that the status would have to have first.
			if d.Unstored() {
				t.Error("the status lacks something")
			}
		})
	}
}

// Before the first write the status has to say where the cluster is, that it is taken
// over, and what was approved.
func TestUnstored(t *testing.T) {
	theirs := teardown("theirs", time.Unix(0, 0))
	approved := approvalsOf([]plan.Change{theirs})

	for name, test := range map[string]struct {
		edit     func(*v1alpha1.OmniCluster)
		adopting bool
		want     bool
	}{
		"all is stored":          {func(*v1alpha1.OmniCluster) {}, false, false},
		"no endpoint":            {func(o *v1alpha1.OmniCluster) { o.Status.Endpoint = "" }, false, true},
		"taken over, not stored": {func(*v1alpha1.OmniCluster) {}, true, true},
		"taken over, stored":     {func(o *v1alpha1.OmniCluster) { o.Status.Adopting = true }, true, false},
		"approved, not stored":   {func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = plan.HashOf([]plan.Change{theirs}) }, false, true},
		"approved, stored": {func(o *v1alpha1.OmniCluster) {
			o.Spec.ApprovedPlan, o.Status.Plan = plan.HashOf([]plan.Change{theirs}), &v1alpha1.OmniClusterPlan{Approved: approved}
		}, false, false},
	} {
		cluster := newCluster()
		cluster.Status.Endpoint = "https://a"
		test.edit(cluster)

		if got := Decide(Facts{Cluster: cluster, Plan: planned(theirs), Adopting: test.adopting}).Unstored(); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
