package consent

import (
	"errors"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// runs are runs one after another of a cluster under ConfirmDestructive: what one stores, the next one finds.
type runs struct {
	cluster   *v1alpha1.OmniCluster
	now       time.Time
	live      []plan.SetState // that Omni has
	manifests []string
}

func newRuns() *runs {
	cluster := newCluster()
	cluster.Spec.ChangePolicy = v1alpha1.ChangePolicyConfirmDestructive

	return &runs{cluster: cluster, now: time.Unix(1700000000, 0)}
}

// plan decides on the changes that Omni would need now.
func (r *runs) plan(changes ...plan.Change) Decision {
	return Decide(Facts{
		Cluster: r.cluster, Plan: &plan.Plan{Cluster: "demo", Changes: changes, Hash: plan.HashOf(changes), Live: r.live, LiveManifests: r.manifests},
		SettleTime: time.Second, Now: r.now,
	})
}

// store writes what outlasts the run into the status.
func (r *runs) store(d Decision) {
	r.cluster.Status.UsedApproval, r.cluster.Status.Plan = d.UsedApproval(), d.PlanStatus()
}

// approve approves the plan that the status shows.
func (r *runs) approve() { r.cluster.Spec.ApprovedPlan = r.cluster.Status.Plan.Hash }

// begun is what Omni says of a destroy that was requested.
func begun(change plan.Change) plan.Change {
	change.TearingDown = true

	return change
}

// takes is the result of an Apply that made a change.
func takes(change plan.Change) plan.Result {
	changes := []plan.Change{change}
	if change.Action == plan.ActionDestroy {
		return plan.Result{Pending: changes, Requested: changes}
	}

	return plan.Result{Applied: changes}
}

// An Omni that was restored from a backup has what was destroyed again, as it was. The hash that still stands in the spec
// was for the first time.
func TestAnApprovalDoesNotOutlastARestoreOfOmni(t *testing.T) {
	created := time.Unix(1600000000, 0)
	scaled := plan.Change{
		Action: plan.ActionUpdate, Type: plan.TypeMachineSet, ID: "b", Set: "b", Destructive: true, Created: created,
		OldSize: "pool/4", NewSize: "pool/2", Version: "7",
	}

	for name, test := range map[string]struct {
		change plan.Change
		taken  plan.Result
	}{
		"a set is destroyed":    {teardown("a", created), takes(teardown("a", created))},
		"a set is gone at once": {teardown("a", created), plan.Result{Applied: []plan.Change{teardown("a", created)}, Requested: []plan.Change{teardown("a", created)}}},
		"a set gets its size":   {scaled, takes(scaled)},
		"a set, then the crash": {teardown("a", created), plan.Result{}}, // Omni took it, and nobody noted it
	} {
		t.Run(name, func(t *testing.T) {
			r := newRuns()
			r.store(r.plan(test.change))
			r.approve()

			first := r.cluster.Spec.ApprovedPlan
			r.store(r.plan(test.change))

			if d := r.plan(test.change); !d.MayDestroy(test.change) {
				t.Fatal("the approved change may not be made")
			} else if len(test.taken.Requested)+len(test.taken.Applied) > 0 {
				r.store(d.After(test.taken, nil))
			}

			if test.change.Action == plan.ActionDestroy {
				r.store(r.plan(begun(test.change)))
			}

			r.store(r.plan())

			// It is back.
			d := r.plan(test.change)
			if d.MayDestroy(test.change) || d.Outcome().Reason() != v1alpha1.ReasonAwaitingApproval {
				t.Errorf("it is destroyed again: %+v", d.Outcome())
			}

			r.store(d)

			if shown := r.cluster.Status.Plan.Hash; shown == first || shown == "" {
				t.Errorf("the hash to approve is %q, the first one was %q", shown, first)
			}

			// One command approves it, and it counts once, too.
			r.approve()
			r.store(r.plan(test.change))

			if d = r.plan(test.change); !d.MayDestroy(test.change) {
				t.Error("a second approval has no effect")
			}

			r.store(d.After(takes(test.change), nil))
			r.store(r.plan())

			if r.plan(test.change).MayDestroy(test.change) {
				t.Error("it is destroyed for the third time")
			}
		})
	}
}

// An approval holds until all of it has begun, whatever fails in between.
func TestAnApprovalIsNotUsedUpTooEarly(t *testing.T) {
	created := time.Unix(1600000000, 0)
	a, b := teardown("a", created), teardown("b", created)

	approved := func() *runs {
		r := newRuns()
		r.live = []plan.SetState{{ID: "a"}, {ID: "b"}}
		r.store(r.plan(a, b))
		r.approve()
		r.store(r.plan(a, b))

		return r
	}
	mayDestroy := func(t *testing.T, d Decision, changes ...plan.Change) {
		t.Helper()

		for _, change := range changes {
			if !d.MayDestroy(change) {
				t.Errorf("%s is not approved any more: %s", change.ID, d.Outcome().Message())
			}
		}
	}

	t.Run("nothing was taken", func(t *testing.T) {
		r := approved()
		r.store(r.plan(a, b).After(plan.Result{Skipped: []plan.Change{a, b}}, errors.New("Omni is away")))
		mayDestroy(t, r.plan(a, b), a, b)

		r.store(r.plan()) // the documents are back for a moment
		mayDestroy(t, r.plan(a, b), a, b)
	})

	t.Run("half of it was taken", func(t *testing.T) {
		r := approved()
		r.store(r.plan(a, b).After(plan.Result{Requested: []plan.Change{a}, Pending: []plan.Change{a}, Skipped: []plan.Change{b}}, errors.New("Omni is away")))
		mayDestroy(t, r.plan(begun(a), b), b)
		r.store(r.plan(begun(a), b))
		mayDestroy(t, r.plan(b), b)
	})

	t.Run("the process ended after half of it", func(t *testing.T) {
		r := approved()
		mayDestroy(t, r.plan(begun(a), b), b)
		r.store(r.plan(begun(a), b))
		mayDestroy(t, r.plan(b), b)
	})

	t.Run("what the documents ask for was taken, and needs no approval", func(t *testing.T) {
		r := newRuns()
		r.cluster.Spec.ChangePolicy = v1alpha1.ChangePolicyApply
		r.cluster.Status.AppliedMachineSets = []v1alpha1.AppliedMachineSet{{ID: "a", Size: "3"}}
		r.store(r.plan(a, b))
		r.approve()
		r.store(r.plan(a, b).After(takes(a), nil))
		mayDestroy(t, r.plan(begun(a), b), b)
	})

	t.Run("another object took it", func(t *testing.T) {
		r := newRuns()
		r.cluster.Spec.ApprovedPlan = "of another plan"
		r.store(r.plan(begun(a)))

		if used := r.cluster.Status.UsedApproval; used != "" {
			t.Errorf("used %q", used)
		}
	})
}

// The answer of an approved change may be lost, or the process ends before it writes the status: what Omni has says whether the
// approval was used. Documents that are put back do not use it.
func TestAnApprovalIsUsedAlthoughNobodySawIt(t *testing.T) {
	created := time.Unix(1600000000, 0)
	change := func(action plan.Action, kind, id, from, to string) plan.Change {
		return plan.Change{Action: action, Type: kind, ID: id, Set: "w", Destructive: true, Created: created, OldSize: from, NewSize: to, Version: "7"}
	}
	scaled := change(plan.ActionUpdate, plan.TypeMachineSet, "w", "pool/5", "pool/3")
	listed := change(plan.ActionUpdate, plan.TypeMachineSet, "w", "pool/5", "1")
	removed := change(plan.ActionDestroy, plan.TypeMachineSet, "w", "1", "")
	machine := change(plan.ActionDestroy, plan.TypeMachineSetNode, "m", "", "")
	manifests := change(plan.ActionUpdate, plan.TypeManifestGroup, "g", "", "")
	emptied := manifests
	emptied.Members = "of objects"
	patch := change(plan.ActionDestroy, "ConfigPatches.omni.sidero.dev", "p", "", "")

	for name, test := range map[string]struct {
		change    plan.Change
		live      []plan.SetState
		manifests []string
		used      bool
	}{
		"a set has the new size":                     {scaled, []plan.SetState{{ID: "w", Size: "pool/3"}}, nil, true},
		"a set has the old size":                     {scaled, []plan.SetState{{ID: "w", Size: "pool/5"}}, nil, false},
		"somebody gave a set another size":           {scaled, []plan.SetState{{ID: "w", Size: "pool/4"}}, nil, false},
		"a set lists its machines":                   {listed, []plan.SetState{{ID: "w", Machines: []string{"m"}}}, nil, true},
		"a set takes its machines from a class":      {listed, []plan.SetState{{ID: "w", Size: "pool/5"}}, nil, false},
		"a set is gone":                              {removed, []plan.SetState{{ID: "other"}}, nil, true},
		"a set is there":                             {removed, []plan.SetState{{ID: "w"}}, nil, false},
		"a machine left its set":                     {machine, []plan.SetState{{ID: "w", Machines: []string{"other"}}}, nil, true},
		"a machine is in its set":                    {machine, []plan.SetState{{ID: "w", Machines: []string{"m"}}}, nil, false},
		"a manifest group is not full any more":      {manifests, nil, []string{"other"}, true},
		"a manifest group is full":                   {manifests, nil, []string{"g"}, false},
		"a full group may have lost its objects":     {emptied, nil, []string{"g"}, true},
		"a patch, of which nothing else can be seen": {patch, nil, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRuns()
			r.store(r.plan(test.change))
			r.approve()
			r.store(r.plan(test.change))

			hash := r.cluster.Spec.ApprovedPlan
			r.live, r.manifests = test.live, test.manifests
			r.store(r.plan())

			if used := r.cluster.Status.UsedApproval; (used == hash) != test.used {
				t.Errorf("used %q, approved %q", used, hash)
			}

			if again := r.plan(test.change).MayDestroy(test.change); again == test.used {
				t.Errorf("it is approved once more: %v", again)
			}
		})
	}
}

// What is approved and has to wait for Omni is no part of what may be made now, and not used.
func TestAnApprovalIsNotUsedWhileItsChangeWaits(t *testing.T) {
	patch := plan.Change{Action: plan.ActionUpdate, Type: "ConfigPatches.omni.sidero.dev", ID: "p", Destructive: true, Version: "7"}
	r := newRuns()
	r.store(r.plan(patch))
	r.approve()
	r.store(r.plan(patch))

	patch.Destructive, patch.Version = false, ""

	waits := Decide(Facts{Cluster: r.cluster, Plan: &plan.Plan{Cluster: "demo", WaitingForOmni: []plan.Change{patch}}, Now: r.now})
	if used := waits.UsedApproval(); used != "" {
		t.Errorf("used %q", used)
	}
}
