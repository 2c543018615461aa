package plan

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// unreadableOmni fails all readings of one type.
type unreadableOmni struct {
	omnitest.RefusingOmni

	kind resource.Type
}

var errUnreadable = errors.New("the connection broke")

// Get implements state.CoreState.
func (u *unreadableOmni) Get(ctx context.Context, pointer resource.Pointer, options ...state.GetOption) (resource.Resource, error) {
	if pointer.Type() == u.kind {
		return nil, errUnreadable
	}

	return u.RefusingOmni.Get(ctx, pointer, options...)
}

// List implements state.CoreState.
func (u *unreadableOmni) List(ctx context.Context, kind resource.Kind, options ...state.ListOption) (resource.List, error) {
	if kind.Type() == u.kind {
		return resource.List{}, errUnreadable
	}

	return u.RefusingOmni.List(ctx, kind, options...)
}

// What cannot be read once more before a teardown might have changed: nothing is torn down.
func TestApplyDestroysNothingThatItCannotReadAgain(t *testing.T) {
	for name, kind := range map[string]resource.Type{
		"the cluster": omnires.ClusterType, "its ID": omnires.ClusterUUIDType, "the set": TypeMachineSet, "the machines of the set": TypeMachineSetNode,
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, omnitest.FullTemplate)

			plan := mustPlan(t, st, omnitest.ClusterDocument+omnitest.ControlPlaneDocument, Options{})
			unreadable := &unreadableOmni{RefusingOmni: omnitest.RefusingOmni{CoreState: st}, kind: kind}

			if _, err := Apply(t.Context(), state.WrapCore(unreadable), plan, ApplyOptions{Consent: EveryChange}); !errors.Is(err, errUnreadable) || len(unreadable.Writes) > 0 {
				t.Errorf("%v: %q", err, unreadable.Writes)
			}
		})
	}

	for name, kind := range map[string]resource.Type{
		"a deletion, the cluster": omnires.ClusterType, "a deletion, its ID": omnires.ClusterUUIDType, "a deletion, the machine": omnires.MachineStatusType,
	} {
		t.Run(name, func(t *testing.T) {
			st, plan := deletionWithADeadMachine(t)
			unreadable := &unreadableOmni{RefusingOmni: omnitest.RefusingOmni{CoreState: st}, kind: kind}

			if _, err := Apply(t.Context(), state.WrapCore(unreadable), plan, ApplyOptions{Consent: EveryChange}); !errors.Is(err, errUnreadable) || len(unreadable.Writes) > 0 {
				t.Errorf("%v: %q", err, unreadable.Writes)
			}
		})
	}
}

// A deletion goes on when Omni has taken the ID away or the Cluster is gone, and not for a cluster with another ID.
func TestDeleteKnowsItsClusterToTheEnd(t *testing.T) {
	identity := func(uuid string) *omnires.ClusterUUID {
		made := omnires.NewClusterUUID("demo")
		made.TypedSpec().Value.Uuid = uuid

		return made
	}

	for name, test := range map[string]struct {
		meanwhile func(*testing.T, *omnitest.FakeOmni)
		goes      bool
	}{
		"nothing happens": {func(*testing.T, *omnitest.FakeOmni) {}, true},
		"being torn down, without its ID": {func(t *testing.T, st *omnitest.FakeOmni) {
			omnitest.TearDown(t, st, omnitest.ClusterNamed("demo"))
			omnitest.MustDestroy(t, st, identity("old"))
		}, true},
		"without its ID": {func(t *testing.T, st *omnitest.FakeOmni) { omnitest.MustDestroy(t, st, identity("old")) }, false},
		"being torn down, with another ID": {func(t *testing.T, st *omnitest.FakeOmni) {
			omnitest.TearDown(t, st, omnitest.ClusterNamed("demo"))
			omnitest.MustChange(t, st, identity("old"), func(item *omnires.ClusterUUID) { item.TypedSpec().Value.Uuid = "new" })
		}, false},
		"gone": {func(t *testing.T, st *omnitest.FakeOmni) { omnitest.MustDestroy(t, st, omnitest.ClusterNamed("demo")) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, omnitest.FullTemplate)
			omnitest.MustCreate(t, st, identity("old"))

			plan, err := Delete(t.Context(), st, "demo", DeleteOptions{})
			if err != nil {
				t.Fatal(err)
			}

			test.meanwhile(t, st)

			result, err := Apply(t.Context(), st, plan, ApplyOptions{Consent: EveryChange})
			if goes := err == nil; goes != test.goes || !goes && (!errors.Is(err, omni.ErrPlanOutdated) || len(result.Taken()) > 0) {
				t.Errorf("%v, %+v", err, result)
			}
		})
	}
}

// A deletion stops at the first refusal: what comes later may be the cluster itself.
func TestDeleteStopsAtTheFirstRefusal(t *testing.T) {
	st, plan := deletionWithADeadMachine(t)
	noting := &omnitest.RefusingOmni{CoreState: st, Refuse: omnitest.Machine2, With: errNoClass}

	result, err := Apply(t.Context(), state.WrapCore(noting), plan, ApplyOptions{Consent: EveryChange})
	if refusalOf(err) == nil || len(noting.Writes) != 1 || len(result.Taken()) > 0 || len(result.Skipped) != len(plan.Changes)-1 {
		t.Errorf("%v: wrote %q, %+v", err, noting.Writes, result)
	}

	if cluster, err := st.Get(t.Context(), omnitest.ClusterNamed("demo").Metadata()); err != nil || cluster.Metadata().Phase() != resource.PhaseRunning {
		t.Errorf("the cluster: %v, %v", cluster, err)
	}
}

// One look counts for a second, and for changes of one type: a hundred teardowns do not become a hundred readings, and a long row
// of them notices what happens meanwhile.
func TestLooksOfALongApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const m4, m5 = machine4, "55555555-5555-4555-8555-555555555555"

		st := omnitest.NewFakeOmni()
		base := omnitest.ClusterDocument + omnitest.ControlPlaneDocument
		mustSync(t, st, base+workers("a", omnitest.Machine2+", "+omnitest.Machine3+", "+m4+", "+m5)+classWorkers("b", "1"))

		var seen []string

		_, err := Apply(t.Context(), st, mustPlan(t, st, base+workers("a", ""), Options{}), ApplyOptions{
			Consent: EveryChange,
			Confirm: func(context.Context) error {
				seen = append(seen, "look")

				return nil
			},
			Written: func(written resource.Metadata, effect omni.Effect) {
				if effect == omni.EffectTornDown {
					seen = append(seen, omni.KindOf(written.Type()))

					time.Sleep(400 * time.Millisecond)
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}

		nodes := func(count int) []string { return slices.Repeat([]string{"MachineSetNode"}, count) }
		want := slices.Concat([]string{"MachineSet", "look"}, nodes(3), []string{"look"}, nodes(1))
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Error(diff)
		}
	})
}

// A resource that cannot be looked up may be another cluster's: there is no plan then.
func TestNoPlanWithoutALookForCollisions(t *testing.T) {
	for _, kind := range []resource.Type{TypeMachineSet, TypeMachineSetNode, omnires.ConfigPatchType, omnires.ClusterType, omnires.ClusterUUIDType} {
		unreadable := &unreadableOmni{RefusingOmni: omnitest.RefusingOmni{CoreState: omnitest.NewFakeOmni()}, kind: kind}

		plan, err := Sync(t.Context(), state.WrapCore(unreadable), mustLoad(t, omnitest.FullTemplate+machine(omnitest.Machine2, netPatch)), Options{})
		if !errors.Is(err, errUnreadable) {
			t.Errorf("%s: %v, %+v", kind, err, plan)
		}
	}
}

// destroyingOmni calls a function before each destroy.
type destroyingOmni struct {
	state.CoreState

	before func(context.Context, resource.Pointer) error
}

// Destroy implements state.CoreState.
func (d *destroyingOmni) Destroy(ctx context.Context, pointer resource.Pointer, options ...state.DestroyOption) error {
	if err := d.before(ctx, pointer); err != nil {
		return err
	}

	return d.CoreState.Destroy(ctx, pointer, options...)
}

// Between the teardown and the destroy Omni may do anything. What is gone is done, what is held is pending, and the rest failed.
func TestApplyWhenOmniIsQuicker(t *testing.T) {
	destroy := []string{"destroy MachineSet demo-workers"}

	for name, test := range map[string]struct {
		before           func(*omnitest.FakeOmni) func(context.Context, resource.Pointer) error
		applied, pending []string
		fails            bool
	}{
		"nothing happens": {
			func(*omnitest.FakeOmni) func(context.Context, resource.Pointer) error {
				return func(context.Context, resource.Pointer) error { return nil }
			}, destroy, []string{}, false,
		},
		"a finalizer is added": {
			func(st *omnitest.FakeOmni) func(context.Context, resource.Pointer) error {
				return func(ctx context.Context, pointer resource.Pointer) error {
					return st.AddFinalizer(ctx, pointer, "MachineSetStatusController")
				}
			}, []string{}, destroy, false,
		},
		"it is gone": {
			func(st *omnitest.FakeOmni) func(context.Context, resource.Pointer) error {
				return func(ctx context.Context, pointer resource.Pointer) error { return st.Destroy(ctx, pointer) }
			}, destroy, []string{}, false,
		},
		"Omni fails": {
			func(*omnitest.FakeOmni) func(context.Context, resource.Pointer) error {
				return func(context.Context, resource.Pointer) error { return errUnreadable }
			}, []string{}, []string{}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, omnitest.ClusterDocument+omnitest.ControlPlaneDocument+omnitest.ClassDocument("cpu", "2"))

			plan := mustPlan(t, st, omnitest.ClusterDocument+omnitest.ControlPlaneDocument, Options{})

			result, err := Apply(t.Context(), state.WrapCore(&destroyingOmni{CoreState: st, before: test.before(st)}), plan, ApplyOptions{Consent: EveryChange})
			if (err != nil) != test.fails || test.fails && !errors.Is(err, errUnreadable) {
				t.Errorf("error %v", err)
			}

			if diff := cmp.Diff(test.applied, changes(result.Applied)) + cmp.Diff(test.pending, changes(result.Pending)); diff != "" {
				t.Error(diff)
			}

			// However it ended, this call began it, and no other one will tell.
			if diff := cmp.Diff(destroy, changes(result.Taken())); diff != "" {
				t.Errorf("taken (-want +got):\n%s", diff)
			}
		})
	}
}
