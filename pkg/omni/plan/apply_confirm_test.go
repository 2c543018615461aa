package plan

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// hookedOmni calls a function after each write that succeeds.
type hookedOmni struct {
	state.CoreState

	written func(resource.Pointer)
}

func (h *hookedOmni) Create(ctx context.Context, item resource.Resource, options ...state.CreateOption) error {
	err := h.CoreState.Create(ctx, item, options...)
	if err == nil {
		h.written(item.Metadata())
	}

	return err
}

func (h *hookedOmni) Update(ctx context.Context, item resource.Resource, options ...state.UpdateOption) error {
	err := h.CoreState.Update(ctx, item, options...)
	if err == nil {
		h.written(item.Metadata())
	}

	return err
}

// A plan's writes can take minutes. Whatever the teardown of a set depends on is looked at again after them.
func TestApplyLooksAgainAfterItsWrites(t *testing.T) {
	const another = "---\nkind: Workers\nname: more\nmachines:\n- " + omnitest.Machine2 + "\n"

	annotate := func(key string) func(*testing.T, *omnitest.FakeOmni) {
		return func(t *testing.T, st *omnitest.FakeOmni) {
			omnitest.MustChange(t, st, omnitest.ClusterNamed("demo"), func(c *omnires.Cluster) { c.Metadata().Annotations().Set(key, "another") })
		}
	}

	for name, test := range map[string]struct {
		meanwhile func(*testing.T, *omnitest.FakeOmni)
		unwanted  bool
		goes      bool
	}{
		"another owner":   {meanwhile: annotate(v1alpha1.MarkOwnerUID)},
		"a lock":          {meanwhile: annotate(omnires.ClusterLocked)},
		"no more wanted":  {unwanted: true},
		"nothing else":    {goes: true},
		"another cluster": {meanwhile: func(t *testing.T, st *omnitest.FakeOmni) { omnitest.MustCreate(t, st, omnitest.ClusterNamed("other")) }, goes: true},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, omnitest.ClusterDocument+omnitest.ControlPlaneDocument+omnitest.ClassDocument("cpu", "2"))

			plan, asked := mustPlan(t, st, omnitest.ClusterDocument+omnitest.ControlPlaneDocument+another, Options{}), 0
			hooked := &hookedOmni{CoreState: st, written: func(item resource.Pointer) {
				if item.ID() == "demo-more" && test.meanwhile != nil {
					test.meanwhile(t, st)
				}
			}}

			result, err := Apply(t.Context(), state.WrapCore(hooked), plan, ApplyOptions{Consent: EveryChange, Confirm: func(context.Context) error {
				asked++
				if test.unwanted {
					return omni.ErrPlanOutdated
				}

				return nil
			}})

			goes := slices.Contains(changes(result.Requested), "destroy MachineSet demo-workers")
			if goes != test.goes || !goes && !errors.Is(err, omni.ErrPlanOutdated) || goes && (err != nil || asked != 1) {
				t.Errorf("%v, %+v, asked %d times", err, result, asked)
			}

			if skipped := changes(result.Skipped); !goes && !slices.Contains(skipped, "destroy MachineSet demo-workers") {
				t.Errorf("skipped %v", skipped)
			}

			set, err := st.Get(t.Context(), omnitest.SetNamed("demo", "workers").Metadata())
			if !test.goes && (err != nil || set.Metadata().Phase() != resource.PhaseRunning) {
				t.Errorf("the set: %v %v", set, err)
			}
		})
	}
}

// The Cluster that Apply itself wrote is no other one.
func TestApplyKnowsItsOwnCluster(t *testing.T) {
	marked := strings.Replace(omnitest.ClusterDocument, "owner-uid: uid-1", "owner-uid: uid-2", 1)

	for name, options := range map[string]Options{"it updates it": {}, "it updates it first": {ClusterFirst: true}, "in parts": {Rollout: true}} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, omnitest.FullTemplate)

			plan := mustPlan(t, st, strings.Replace(marked, "v1.35.0", "v1.35.1", 1)+omnitest.ControlPlaneDocument, options)

			result, err := Apply(t.Context(), st, plan, ApplyOptions{Consent: EveryChange})
			if err != nil || len(result.Skipped) > 0 || !slices.Contains(changes(result.Applied), "destroy MachineSet demo-workers") {
				t.Errorf("%v, %+v", err, result)
			}
		})
	}

	t.Run("it makes it", func(t *testing.T) {
		st := omnitest.NewFakeOmni()
		omnitest.MustCreate(t, st, omnitest.SetNamed("demo", "old"))

		hooked := &hookedOmni{CoreState: st, written: func(item resource.Pointer) {
			if item.Type() == omnires.ClusterType {
				identity := omnires.NewClusterUUID("demo")
				identity.TypedSpec().Value.Uuid = "new"
				omnitest.MustCreate(t, st, identity)
			}
		}}

		result, err := Apply(t.Context(), state.WrapCore(hooked), mustPlan(t, st, omnitest.FullTemplate, Options{}), ApplyOptions{Consent: EveryChange})
		if err != nil || !slices.Contains(changes(result.Applied), "destroy MachineSet demo-old") {
			t.Errorf("%v, %+v", err, result)
		}
	})
}

// The links of dead machines go before the cluster: it may be kept by then.
func TestDeleteLooksAgainBeforeTheCluster(t *testing.T) {
	st, plan := deletionWithADeadMachine(t)

	result, err := Apply(t.Context(), st, plan, ApplyOptions{Consent: EveryChange, Confirm: func(context.Context) error { return omni.ErrPlanOutdated }})
	if !errors.Is(err, omni.ErrPlanOutdated) || len(result.Applied) != 1 {
		t.Errorf("%v, %+v", err, result)
	}

	if cluster, err := st.Get(t.Context(), omnitest.ClusterNamed("demo").Metadata()); err != nil || cluster.Metadata().Phase() != resource.PhaseRunning {
		t.Errorf("the cluster: %v, %v", cluster, err)
	}
}
