package plan

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

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

func changes(list []Change) []string {
	shown := []string{}
	for _, change := range list {
		shown = append(shown, string(change.Action)+" "+omni.KindOf(change.Type)+" "+change.ID)
	}

	return shown
}

func TestApplyInOrder(t *testing.T) {
	st := omnitest.NewFakeOmni()
	noting := &omnitest.RefusingOmni{CoreState: st}

	result, err := Apply(t.Context(), state.WrapCore(noting), mustPlan(t, st, omnitest.FullTemplate, Options{}), ApplyOptions{})
	if err != nil {
		t.Fatal(err)
	}

	want := []string{
		"create Cluster demo", "create MachineSet demo-control-planes", "create MachineSet demo-workers",
		"create MachineSetNode " + omnitest.Machine1, "create MachineSetNode " + omnitest.Machine2, "create MachineSetNode " + omnitest.Machine3,
	}
	if diff := cmp.Diff(want, noting.Writes); diff != "" {
		t.Error(diff)
	}

	if diff := cmp.Diff(want, changes(result.Applied)); diff != "" || len(result.Taken()) == 0 {
		t.Error(diff)
	}

	// The second run writes nothing.
	noting.Writes = nil

	result, err = Apply(t.Context(), state.WrapCore(noting), mustPlan(t, st, omnitest.FullTemplate, Options{}), ApplyOptions{Consent: EveryChange})
	if err != nil || len(noting.Writes) > 0 || len(result.Taken()) > 0 {
		t.Errorf("second run: %v, %v", noting.Writes, err)
	}
}

// TestApplyGoesOnPastARefusedSet checks that steps that do not depend on the refused set go on in the same run, the
// rest later.
// silentOmni returns nothing from Create, as the client of a real Omni does.
type silentOmni struct{ state.CoreState }

// Create implements state.CoreState.
func (s silentOmni) Create(ctx context.Context, item resource.Resource, options ...state.CreateOption) error {
	return s.CoreState.Create(ctx, item.DeepCopy(), options...)
}

// When Omni made something is what Omni says, and not when this process asked for it: what has another time is taken for somebody else's.
func TestApplyKnowsWhenItWasMade(t *testing.T) {
	st := omnitest.NewFakeOmni()
	planned := mustPlan(t, st, omnitest.FullTemplate, Options{})
	time.Sleep(10 * time.Millisecond)

	result, err := Apply(t.Context(), state.WrapCore(silentOmni{st}), planned, ApplyOptions{})
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(mustPlan(t, st, omnitest.FullTemplate, Options{}).LiveSince, result.Created); diff != "" || len(result.Created) != 5 {
		t.Errorf("(-in Omni +recorded):\n%s", diff)
	}
}

func TestApplyGoesOnPastARefusedSet(t *testing.T) {
	st := omnitest.NewFakeOmni()
	plan := mustPlan(t, st, omnitest.FullTemplate, Options{})
	noting := &omnitest.RefusingOmni{CoreState: st, Refuse: "demo-workers", With: status.Error(codes.InvalidArgument, "failed to validate: no such machine class")}

	result, err := Apply(t.Context(), state.WrapCore(noting), plan, ApplyOptions{})

	var refused *ChangeError
	if !errors.As(err, &refused) || refused.Class != omni.ClassRefused || refused.Change.ID != "demo-workers" || omni.Classify(err) != omni.ClassRefused {
		t.Fatalf("error %v", err)
	}

	if want := `create MachineSet "demo-workers": Omni refuses this: failed to validate: no such machine class`; err.Error() != want {
		t.Errorf("got %q", err)
	}

	applied := []string{"create Cluster demo", "create MachineSet demo-control-planes", "create MachineSetNode " + omnitest.Machine1}
	if diff := cmp.Diff(applied, changes(result.Applied)); diff != "" {
		t.Error(diff)
	}

	skipped := []string{"create MachineSetNode " + omnitest.Machine2, "create MachineSetNode " + omnitest.Machine3}
	if diff := cmp.Diff(skipped, changes(result.Skipped)); diff != "" {
		t.Error(diff)
	}

	if len(result.Refused) != 1 || result.Refused[0] != refused || len(result.Taken()) == 0 {
		t.Errorf("result %+v", result)
	}

	if want := append(applied[:2:2], "create MachineSet demo-workers", applied[2]); !cmp.Equal(want, noting.Writes) {
		t.Errorf("tried %q", noting.Writes)
	}

	// After the remedy in Omni, the next plan has only the rest.
	rest := mustPlan(t, st, omnitest.FullTemplate, Options{})
	if rest.Count(ActionCreate) != 3 || rest.Count(ActionUpdate) != 0 {
		t.Errorf("rest %v", lines(rest))
	}

	mustSync(t, st, omnitest.FullTemplate)

	if plan = mustPlan(t, st, omnitest.FullTemplate, Options{}); !plan.Empty() {
		t.Errorf("left: %v", lines(plan))
	}
}

func TestApplyNoticesConflicts(t *testing.T) {
	changed := strings.Replace(omnitest.FullTemplate, "v1.35.0", "v1.35.1", 1)

	for name, test := range map[string]struct {
		meddle func(t *testing.T, st *omnitest.FakeOmni)
		class  omni.Class
	}{
		"changed since": {
			func(t *testing.T, st *omnitest.FakeOmni) {
				omnitest.MustChange(t, st, omnires.NewCluster("demo"), func(c *omnires.Cluster) { c.Metadata().Annotations().Set("x", "y") })
			}, omni.ClassConflict,
		},
		"gone since":        {func(t *testing.T, st *omnitest.FakeOmni) { omnitest.MustDestroy(t, st, omnires.NewCluster("demo")) }, omni.ClassConflict},
		"tearing down":      {func(t *testing.T, st *omnitest.FakeOmni) { omnitest.TearDown(t, st, omnires.NewCluster("demo")) }, omni.ClassConflict},
		"locked by someone": {func(t *testing.T, st *omnitest.FakeOmni) { omnitest.LockCluster(t, st) }, omni.ClassConflict},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, omnitest.FullTemplate)

			plan := mustPlan(t, st, changed, Options{})
			test.meddle(t, st)

			_, err := Apply(t.Context(), st, plan, ApplyOptions{})
			if omni.Classify(err) != test.class {
				t.Errorf("error %v is %q", err, omni.Classify(err))
			}
		})
	}

	st := omnitest.NewFakeOmni()
	plan := mustPlan(t, st, omnitest.FullTemplate, Options{})
	omnitest.MustCreate(t, st, omnitest.ClusterNamed("demo"))

	if _, err := Apply(t.Context(), st, plan, ApplyOptions{}); omni.Classify(err) != omni.ClassConflict {
		t.Errorf("made meanwhile: %v", err)
	}
}

func TestApplyKeepsOffALockedCluster(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, omnitest.FullTemplate)
	omnitest.LockCluster(t, st)

	noting := &omnitest.RefusingOmni{CoreState: st}
	plan := mustPlan(t, st, strings.Replace(omnitest.FullTemplate, "v1.35.0", "v1.35.1", 1), Options{})

	result, err := Apply(t.Context(), state.WrapCore(noting), plan, ApplyOptions{Consent: EveryChange})
	if !errors.Is(err, omni.ErrClusterLocked) || len(noting.Writes) > 0 || len(result.Skipped) != 1 {
		t.Errorf("error %v, writes %v", err, noting.Writes)
	}
}

func TestApplyMayBeRepeated(t *testing.T) {
	st := omnitest.NewFakeOmni()
	plan := mustPlan(t, st, omnitest.FullTemplate, Options{})

	if _, err := Apply(t.Context(), st, plan, ApplyOptions{}); err != nil {
		t.Fatal(err)
	}

	// An old plan does no harm: applying it is a conflict, and makes no second cluster.
	if _, err := Apply(t.Context(), st, plan, ApplyOptions{}); omni.Classify(err) != omni.ClassConflict {
		t.Errorf("error %v", err)
	}
}

func TestApplyDestroysWithoutWaiting(t *testing.T) {
	st := omnitest.NewFakeOmni()
	withPatch := strings.Replace(omnitest.FullTemplate, "talos:", "patches:\n- name: a\n  inline:\n    machine:\n      network:\n        hostname: x\ntalos:", 1)
	mustSync(t, st, withPatch)

	set := omnitest.SetNamed("demo", "workers")
	if err := st.AddFinalizer(t.Context(), set.Metadata(), "MachineSetStatusController"); err != nil {
		t.Fatal(err)
	}

	document := omnitest.ClusterDocument + omnitest.ControlPlaneDocument
	plan := mustPlan(t, st, document, Options{})

	// The set's finalizer stays: if it waited for the set, this would not end.
	result, err := Apply(await.Context(t), st, plan, ApplyOptions{Consent: EveryChange})
	if err != nil {
		t.Fatal(err)
	}

	// The set's teardown is requested; patches are in a later phase and stay until then.
	if diff := cmp.Diff([]string{"destroy MachineSet demo-workers"}, changes(result.Pending)); diff != "" {
		t.Error(diff)
	}

	if diff := cmp.Diff([]string{"destroy ConfigPatch 200-cluster-demo-a"}, changes(result.Skipped)); diff != "" {
		t.Error(diff)
	}

	if diff := cmp.Diff([]string{"destroy MachineSet demo-workers"}, changes(result.Requested)); diff != "" {
		t.Error(diff)
	}

	// A second plan needs no consent for a teardown that has begun, and requests nothing twice.
	plan = mustPlan(t, st, document, Options{})
	if plan.Hash != "" {
		t.Error("what was begun asks for consent again")
	}

	result, err = Apply(t.Context(), st, plan, ApplyOptions{})
	if err != nil || len(result.Pending) != 1 || len(result.Requested) != 0 || len(result.Taken()) > 0 {
		t.Errorf("result %+v, %v", result, err)
	}

	// Omni finishes.
	if err = st.RemoveFinalizer(t.Context(), set.Metadata(), "MachineSetStatusController"); err != nil {
		t.Fatal(err)
	}

	result, err = Apply(t.Context(), st, mustPlan(t, st, document, Options{}), ApplyOptions{})
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]string{"destroy MachineSet demo-workers", "destroy ConfigPatch 200-cluster-demo-a"}, changes(result.Applied)); diff != "" {
		t.Error(diff)
	}
}

// A teardown that is not over keeps the later phases waiting, and nothing of its own.
func TestApplyRequestsAllTeardownsOfAPhase(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, omnitest.ClusterDocument+omnitest.ControlPlaneDocument+classWorkers("a", "1")+classWorkers("b", "1"))

	for _, name := range []string{"a", "b"} {
		if err := st.AddFinalizer(t.Context(), omnitest.SetNamed("demo", name).Metadata(), "MachineSetStatusController"); err != nil {
			t.Fatal(err)
		}
	}

	result, err := Apply(t.Context(), st, mustPlan(t, st, omnitest.ClusterDocument+omnitest.ControlPlaneDocument, Options{}), ApplyOptions{Consent: EveryChange})
	if err != nil {
		t.Fatal(err)
	}

	both := []string{"destroy MachineSet demo-a", "destroy MachineSet demo-b"}
	if diff := cmp.Diff(both, changes(result.Requested)); diff != "" {
		t.Error(diff)
	}

	if diff := cmp.Diff(both, changes(result.Taken())); diff != "" {
		t.Errorf("taken: %s", diff)
	}
}

// What a call made or began, for events: a destroy counts once, when it begins, and what destroys comes first.
func TestTaken(t *testing.T) {
	made := Change{Action: ActionCreate, ID: "made"}
	began := Change{Action: ActionDestroy, ID: "began", Destructive: true}
	ended := Change{Action: ActionDestroy, ID: "ended", Destructive: true}

	taken := Result{Applied: []Change{made, ended}, Pending: []Change{began}, Requested: []Change{began}}.Taken()
	if diff := cmp.Diff([]Change{began, made}, taken); diff != "" {
		t.Error(diff)
	}
}

func TestApplyHoldsBackWithoutLeave(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, omnitest.FullTemplate)

	// One version up, one machine less.
	document := strings.Replace(strings.Replace(omnitest.FullTemplate, "- "+omnitest.Machine3+"\n", "", 1), "v1.35.0", "v1.35.1", 1)

	result, err := Apply(t.Context(), st, mustPlan(t, st, document, Options{}), ApplyOptions{})
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]string{"update Cluster demo"}, changes(result.Applied)); diff != "" {
		t.Error(diff)
	}

	if diff := cmp.Diff([]string{"destroy MachineSetNode " + omnitest.Machine3}, changes(result.Held)); diff != "" {
		t.Error(diff)
	}

	if _, err = st.Get(t.Context(), omnires.NewMachineSetNode(omnitest.Machine3, omnitest.SetNamed("demo", "workers")).Metadata()); err != nil {
		t.Errorf("the machine: %v", err)
	}
}

func TestApplyDoesNotHitAnotherClusterOfTheSameName(t *testing.T) {
	st := omnitest.NewFakeOmni()
	omnitest.MustCreate(t, st, omnitest.ClusterNamed("demo"))

	plan, err := Delete(t.Context(), st, "demo", DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}

	omnitest.MustDestroy(t, st, omnitest.ClusterNamed("demo"))
	time.Sleep(2 * time.Millisecond)
	omnitest.MustCreate(t, st, omnitest.ClusterNamed("demo"))

	if _, err = Apply(t.Context(), st, plan, ApplyOptions{Consent: EveryChange}); !errors.Is(err, omni.ErrPlanOutdated) {
		t.Errorf("error %v", err)
	}

	if _, err = st.Get(t.Context(), omnitest.ClusterNamed("demo").Metadata()); err != nil {
		t.Errorf("the new cluster: %v", err)
	}
}

// TestApplyNoticesAnotherOwner checks that creates and teardowns, which carry no version, are not made in a cluster
// that is no longer the one of the plan, whether or not they are destructive.
func TestApplyNoticesAnotherOwner(t *testing.T) {
	for name, change := range map[string]func(*omnitest.FakeOmni){
		"the mark": func(st *omnitest.FakeOmni) {
			omnitest.MustChange(t, st, omnitest.ClusterNamed("demo"), func(c *omnires.Cluster) { c.Metadata().Annotations().Set("owner", "somebody") })
		},
		"made again": func(st *omnitest.FakeOmni) {
			omnitest.MustDestroy(t, st, omnitest.ClusterNamed("demo"))
			time.Sleep(2 * time.Millisecond)
			omnitest.MustCreate(t, st, omnitest.ClusterNamed("demo"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			patch := omnitest.Labelled(omnires.NewConfigPatch("p"), "demo")
			omnitest.MustCreate(t, st, omnitest.ClusterNamed("demo"), patch)

			seen, err := omni.ReadCluster(t.Context(), st, "demo")
			if err != nil {
				t.Fatal(err)
			}

			result := &template.SyncResult{
				Create:  []resource.Resource{omnitest.Labelled(omnires.NewConfigPatch("new"), "demo")},
				Destroy: [][]resource.Resource{{patch}},
			}
			plan := planBuilder{cluster: "demo"}.build(t.Context(), result, seen)

			change(st)

			if _, err := Apply(t.Context(), st, plan, ApplyOptions{}); !errors.Is(err, omni.ErrPlanOutdated) {
				t.Errorf("error %v", err)
			}

			if _, err := st.Get(t.Context(), patch.Metadata()); err != nil {
				t.Errorf("the patch: %v", err)
			}
		})
	}
}

// TestApplyNoticesANewCluster checks that the remains of an incomplete cluster are not torn down once a cluster of that
// name exists.
func TestApplyNoticesANewCluster(t *testing.T) {
	st := omnitest.NewFakeOmni()
	omnitest.MustCreate(t, st, omnitest.SetNamed("demo", "workers"))

	plan, err := Delete(t.Context(), st, "demo", DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}

	omnitest.MustCreate(t, st, omnitest.ClusterNamed("demo"))

	if _, err = Apply(t.Context(), st, plan, ApplyOptions{Consent: EveryChange}); !errors.Is(err, omni.ErrPlanOutdated) {
		t.Errorf("error %v", err)
	}

	if set, err := st.Get(t.Context(), omnitest.SetNamed("demo", "workers").Metadata()); err != nil || set.Metadata().Phase() != resource.PhaseRunning {
		t.Errorf("the set: %v, %v", set, err)
	}
}

func TestApplyStopsWithItsContext(t *testing.T) {
	st := omnitest.NewFakeOmni()
	plan := mustPlan(t, st, omnitest.FullTemplate, Options{})

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	result, err := Apply(ctx, st, plan, ApplyOptions{})
	if !errors.Is(err, context.Canceled) || len(result.Applied) > 0 || omni.Classify(err) != omni.ClassCanceled {
		t.Errorf("error %v, result %+v", err, result)
	}
}
