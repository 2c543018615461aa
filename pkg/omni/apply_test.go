package omni

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/template"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func changes(list []Change) []string {
	shown := []string{}
	for _, change := range list {
		shown = append(shown, string(change.Action)+" "+KindOf(change.Type)+" "+change.ID)
	}

	return shown
}

func TestApplyInOrder(t *testing.T) {
	st := newFakeOmni()
	noting := &refusingOmni{CoreState: st}

	result, err := ApplyPlan(t.Context(), state.WrapCore(noting), mustPlan(t, st, fullTemplate, PlanOptions{}), ApplyOptions{})
	if err != nil {
		t.Fatal(err)
	}

	want := []string{
		"create Cluster demo", "create MachineSet demo-control-planes", "create MachineSet demo-workers",
		"create MachineSetNode " + machine1, "create MachineSetNode " + machine2, "create MachineSetNode " + machine3,
	}
	if diff := cmp.Diff(want, noting.writes); diff != "" {
		t.Error(diff)
	}

	if diff := cmp.Diff(want, changes(result.Applied)); diff != "" || !result.Wrote() {
		t.Error(diff)
	}

	// The second run writes nothing.
	noting.writes = nil

	result, err = ApplyPlan(t.Context(), state.WrapCore(noting), mustPlan(t, st, fullTemplate, PlanOptions{}), ApplyOptions{Leave: EveryChange})
	if err != nil || len(noting.writes) > 0 || result.Wrote() {
		t.Errorf("second run: %v, %v", noting.writes, err)
	}
}

// What does not depend on the refused set goes on in the same run, the rest later.
func TestApplyGoesOnPastARefusedSet(t *testing.T) {
	st := newFakeOmni()
	plan := mustPlan(t, st, fullTemplate, PlanOptions{})
	noting := &refusingOmni{CoreState: st, refuse: "demo-workers", with: status.Error(codes.InvalidArgument, "failed to validate: no such machine class")}

	result, err := ApplyPlan(t.Context(), state.WrapCore(noting), plan, ApplyOptions{})

	var refused *ChangeError
	if !errors.As(err, &refused) || refused.Class != ClassRefused || refused.Change.ID != "demo-workers" || Classify(err) != ClassRefused {
		t.Fatalf("error %v", err)
	}

	if want := `create MachineSet "demo-workers": Omni refuses this: failed to validate: no such machine class`; err.Error() != want {
		t.Errorf("got %q", err)
	}

	applied := []string{"create Cluster demo", "create MachineSet demo-control-planes", "create MachineSetNode " + machine1}
	if diff := cmp.Diff(applied, changes(result.Applied)); diff != "" {
		t.Error(diff)
	}

	skipped := []string{"create MachineSetNode " + machine2, "create MachineSetNode " + machine3}
	if diff := cmp.Diff(skipped, changes(result.Skipped)); diff != "" {
		t.Error(diff)
	}

	if len(result.Refused) != 1 || result.Refused[0] != refused || !result.Wrote() {
		t.Errorf("result %+v", result)
	}

	if want := append(applied[:2:2], "create MachineSet demo-workers", applied[2]); !cmp.Equal(want, noting.writes) {
		t.Errorf("tried %q", noting.writes)
	}

	// The remedy happened in Omni: the next plan has only the rest.
	rest := mustPlan(t, st, fullTemplate, PlanOptions{})
	if rest.Count(ActionCreate) != 3 || rest.Count(ActionUpdate) != 0 {
		t.Errorf("rest %v", lines(rest))
	}

	mustSync(t, st, fullTemplate)

	if plan = mustPlan(t, st, fullTemplate, PlanOptions{}); !plan.Empty() {
		t.Errorf("left: %v", lines(plan))
	}
}

func TestApplyNoticesConflicts(t *testing.T) {
	changed := strings.Replace(fullTemplate, "v1.35.0", "v1.35.1", 1)

	for name, test := range map[string]struct {
		meddle func(t *testing.T, st *fakeOmni)
		class  Class
	}{
		"changed since": {
			func(t *testing.T, st *fakeOmni) {
				mustChange(t, st, omnires.NewCluster("demo"), func(c *omnires.Cluster) { c.Metadata().Annotations().Set("x", "y") })
			}, ClassConflict,
		},
		"gone since":        {func(t *testing.T, st *fakeOmni) { mustDestroy(t, st, omnires.NewCluster("demo")) }, ClassConflict},
		"tearing down":      {func(t *testing.T, st *fakeOmni) { tearDown(t, st, omnires.NewCluster("demo")) }, ClassConflict},
		"locked by someone": {func(t *testing.T, st *fakeOmni) { lockCluster(t, st) }, ClassConflict},
	} {
		t.Run(name, func(t *testing.T) {
			st := newFakeOmni()
			mustSync(t, st, fullTemplate)

			plan := mustPlan(t, st, changed, PlanOptions{})
			test.meddle(t, st)

			_, err := ApplyPlan(t.Context(), st, plan, ApplyOptions{})
			if Classify(err) != test.class {
				t.Errorf("error %v is %q", err, Classify(err))
			}
		})
	}

	st := newFakeOmni()
	plan := mustPlan(t, st, fullTemplate, PlanOptions{})
	mustCreate(t, st, clusterNamed("demo"))

	if _, err := ApplyPlan(t.Context(), st, plan, ApplyOptions{}); Classify(err) != ClassConflict {
		t.Errorf("made meanwhile: %v", err)
	}
}

func TestApplyKeepsOffALockedCluster(t *testing.T) {
	st := newFakeOmni()
	mustSync(t, st, fullTemplate)
	lockCluster(t, st)

	noting := &refusingOmni{CoreState: st}
	plan := mustPlan(t, st, strings.Replace(fullTemplate, "v1.35.0", "v1.35.1", 1), PlanOptions{})

	result, err := ApplyPlan(t.Context(), state.WrapCore(noting), plan, ApplyOptions{Leave: EveryChange})
	if !errors.Is(err, ErrClusterLocked) || len(noting.writes) > 0 || len(result.Skipped) != 1 {
		t.Errorf("error %v, writes %v", err, noting.writes)
	}
}

func TestApplyMayBeRepeated(t *testing.T) {
	st := newFakeOmni()
	plan := mustPlan(t, st, fullTemplate, PlanOptions{})

	if _, err := ApplyPlan(t.Context(), st, plan, ApplyOptions{}); err != nil {
		t.Fatal(err)
	}

	// An old plan does no harm: it is a conflict, not a second cluster.
	if _, err := ApplyPlan(t.Context(), st, plan, ApplyOptions{}); Classify(err) != ClassConflict {
		t.Errorf("error %v", err)
	}
}

func TestApplyDestroysWithoutWaiting(t *testing.T) {
	st := newFakeOmni()
	withPatch := strings.Replace(fullTemplate, "talos:", "patches:\n- name: a\n  inline:\n    machine:\n      network:\n        hostname: x\ntalos:", 1)
	mustSync(t, st, withPatch)

	set := setNamed("demo", "workers")
	if err := st.AddFinalizer(t.Context(), set.Metadata(), "MachineSetStatusController"); err != nil {
		t.Fatal(err)
	}

	document := clusterDocument + controlPlaneDocument
	plan := mustPlan(t, st, document, PlanOptions{})
	started := time.Now()

	result, err := ApplyPlan(t.Context(), st, plan, ApplyOptions{Leave: EveryChange})
	if err != nil || time.Since(started) > 5*time.Second {
		t.Fatal(err)
	}

	// The set is asked to go; patches are a later phase and stay until then.
	if diff := cmp.Diff([]string{"destroy MachineSet demo-workers"}, changes(result.Pending)); diff != "" {
		t.Error(diff)
	}

	if diff := cmp.Diff([]string{"destroy ConfigPatch 200-cluster-demo-a"}, changes(result.Skipped)); diff != "" {
		t.Error(diff)
	}

	if diff := cmp.Diff([]string{"destroy MachineSet demo-workers"}, changes(result.Requested)); diff != "" {
		t.Error(diff)
	}

	// Again, without leave: it was begun, so it only goes on. Nothing is requested twice.
	plan = mustPlan(t, st, document, PlanOptions{})
	if plan.Hash != "" {
		t.Error("what was begun asks for leave again")
	}

	result, err = ApplyPlan(t.Context(), st, plan, ApplyOptions{})
	if err != nil || len(result.Pending) != 1 || len(result.Requested) != 0 || result.Wrote() {
		t.Errorf("result %+v, %v", result, err)
	}

	// Omni is done.
	if err = st.RemoveFinalizer(t.Context(), set.Metadata(), "MachineSetStatusController"); err != nil {
		t.Fatal(err)
	}

	result, err = ApplyPlan(t.Context(), st, mustPlan(t, st, document, PlanOptions{}), ApplyOptions{})
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]string{"destroy MachineSet demo-workers", "destroy ConfigPatch 200-cluster-demo-a"}, changes(result.Applied)); diff != "" {
		t.Error(diff)
	}
}

func TestApplyHoldsBackWithoutLeave(t *testing.T) {
	st := newFakeOmni()
	mustSync(t, st, fullTemplate)

	// One version up, one machine less.
	document := strings.Replace(strings.Replace(fullTemplate, "- "+machine3+"\n", "", 1), "v1.35.0", "v1.35.1", 1)

	result, err := ApplyPlan(t.Context(), st, mustPlan(t, st, document, PlanOptions{}), ApplyOptions{})
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]string{"update Cluster demo"}, changes(result.Applied)); diff != "" {
		t.Error(diff)
	}

	if diff := cmp.Diff([]string{"destroy MachineSetNode " + machine3}, changes(result.Held)); diff != "" {
		t.Error(diff)
	}

	if _, err = st.Get(t.Context(), omnires.NewMachineSetNode(machine3, setNamed("demo", "workers")).Metadata()); err != nil {
		t.Errorf("the machine: %v", err)
	}
}

func TestApplyDoesNotHitAnotherClusterOfTheSameName(t *testing.T) {
	st := newFakeOmni()
	mustCreate(t, st, clusterNamed("demo"))

	plan, err := PlanDelete(t.Context(), st, "demo", DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}

	mustDestroy(t, st, clusterNamed("demo"))
	time.Sleep(2 * time.Millisecond)
	mustCreate(t, st, clusterNamed("demo"))

	if _, err = ApplyPlan(t.Context(), st, plan, ApplyOptions{Leave: EveryChange}); !errors.Is(err, ErrPlanOutdated) {
		t.Errorf("error %v", err)
	}

	if _, err = st.Get(t.Context(), clusterNamed("demo").Metadata()); err != nil {
		t.Errorf("the new cluster: %v", err)
	}
}

// What carries no version is neither made nor torn down in a cluster that is not the one of the plan any more, whether or
// not it is destructive.
func TestApplyNoticesAnotherOwner(t *testing.T) {
	for name, change := range map[string]func(*fakeOmni){
		"the mark": func(st *fakeOmni) {
			mustChange(t, st, clusterNamed("demo"), func(c *omnires.Cluster) { c.Metadata().Annotations().Set("owner", "somebody") })
		},
		"made again": func(st *fakeOmni) {
			mustDestroy(t, st, clusterNamed("demo"))
			time.Sleep(2 * time.Millisecond)
			mustCreate(t, st, clusterNamed("demo"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := newFakeOmni()
			patch := labelled(omnires.NewConfigPatch("p"), "demo")
			mustCreate(t, st, clusterNamed("demo"), patch)

			seen, err := readCluster(t.Context(), st, "demo")
			if err != nil {
				t.Fatal(err)
			}

			result := &template.SyncResult{
				Create:  []resource.Resource{labelled(omnires.NewConfigPatch("new"), "demo")},
				Destroy: [][]resource.Resource{{patch}},
			}
			plan := planBuilder{cluster: "demo"}.build(result, seen)

			change(st)

			if _, err := ApplyPlan(t.Context(), st, plan, ApplyOptions{}); !errors.Is(err, ErrPlanOutdated) {
				t.Errorf("error %v", err)
			}

			if _, err := st.Get(t.Context(), patch.Metadata()); err != nil {
				t.Errorf("the patch: %v", err)
			}
		})
	}
}

// What a half-made cluster left is not torn down once somebody has made a cluster of that name.
func TestApplyNoticesANewCluster(t *testing.T) {
	st := newFakeOmni()
	mustCreate(t, st, setNamed("demo", "workers"))

	plan, err := PlanDelete(t.Context(), st, "demo", DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}

	mustCreate(t, st, clusterNamed("demo"))

	if _, err = ApplyPlan(t.Context(), st, plan, ApplyOptions{Leave: EveryChange}); !errors.Is(err, ErrPlanOutdated) {
		t.Errorf("error %v", err)
	}

	if set, err := st.Get(t.Context(), setNamed("demo", "workers").Metadata()); err != nil || set.Metadata().Phase() != resource.PhaseRunning {
		t.Errorf("the set: %v, %v", set, err)
	}
}

func TestApplyStopsWithItsContext(t *testing.T) {
	st := newFakeOmni()
	plan := mustPlan(t, st, fullTemplate, PlanOptions{})

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	result, err := ApplyPlan(ctx, st, plan, ApplyOptions{})
	if !errors.Is(err, context.Canceled) || len(result.Applied) > 0 || Classify(err) != ClassCanceled {
		t.Errorf("error %v, result %+v", err, result)
	}
}
