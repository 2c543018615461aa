package plan

import (
	"errors"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/omni/resources/siderolink"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// TestDeleteAsksForALinkOnce: the link of a machine is not in the local copy, so Apply reads whether it is being torn
// down, or gone, before it requests its teardown.
func TestDeleteAsksForALinkOnce(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, omnitest.FullTemplate)
	omnitest.MachineIn(t, st, omnitest.Machine2, false)

	link := siderolink.NewLink(omnitest.Machine2, nil)
	omnitest.MustCreate(t, st, link)

	if err := st.AddFinalizer(t.Context(), link.Metadata(), "LinkController"); err != nil {
		t.Fatal(err)
	}

	_, result := deleteStep(t, st, DeleteOptions{DestroyMachines: true})
	wantLinkIn(t, result.Requested)

	for range 2 {
		_, result = deleteStep(t, st, DeleteOptions{DestroyMachines: true})
		wantLinkIn(t, result.Pending)

		if len(result.Taken()) > 0 {
			t.Errorf("asked again for %v", changes(result.Requested))
		}
	}

	// Omni has removed the link, but not yet updated the machine's status.
	if err := st.RemoveFinalizer(t.Context(), link.Metadata(), "LinkController"); err != nil {
		t.Fatal(err)
	}

	if err := st.Destroy(t.Context(), link.Metadata()); err != nil {
		t.Fatal(err)
	}

	_, result = deleteStep(t, st, DeleteOptions{DestroyMachines: true})
	if diff := cmp.Diff([]string{"destroy Cluster demo"}, changes(result.Requested)); diff != "" {
		t.Error(diff)
	}
}

func wantLinkIn(t *testing.T, list []Change) {
	t.Helper()

	if diff := cmp.Diff([]string{"destroy Link " + omnitest.Machine2}, changes(list)); diff != "" {
		t.Error(diff)
	}
}

// TestDeleteLooksAtAMachineOnceMore checks that a machine that reconnected or left the cluster while the copy lagged
// keeps its link.
func TestDeleteLooksAtAMachineOnceMore(t *testing.T) {
	machine := omnires.NewMachineStatus(omnitest.Machine2).Metadata()

	for name, happens := range map[string]func(state.State) error{
		"it is connected again": func(st state.State) error {
			return relabel(t, st, machine, func(labels *resource.Labels) { labels.Delete(omnires.MachineStatusLabelDisconnected) })
		},
		"it is in another cluster": func(st state.State) error {
			return relabel(t, st, machine, func(labels *resource.Labels) { labels.Set(omnires.LabelCluster, "other") })
		},
		"it is in no cluster": func(st state.State) error {
			return relabel(t, st, machine, func(labels *resource.Labels) { labels.Delete(omnires.LabelCluster) })
		},
		"it is gone": func(st state.State) error { return st.Destroy(t.Context(), machine) },
	} {
		t.Run(name, func(t *testing.T) {
			st, plan := deletionWithADeadMachine(t)

			if err := happens(st); err != nil {
				t.Fatal(err)
			}

			if _, err := Apply(t.Context(), st, plan, ApplyOptions{Consent: EveryChange}); !errors.Is(err, omni.ErrPlanOutdated) {
				t.Errorf("error %v", err)
			}

			link, err := st.Get(t.Context(), siderolink.NewLink(omnitest.Machine2, nil).Metadata())
			if err != nil || link.Metadata().Phase() != resource.PhaseRunning {
				t.Errorf("the link: %v, %v", link, err)
			}
		})
	}
}

func relabel(t *testing.T, st state.State, pointer resource.Pointer, change func(*resource.Labels)) error {
	t.Helper()

	_, err := st.UpdateWithConflicts(t.Context(), pointer, func(found resource.Resource) error {
		change(found.Metadata().Labels())

		return nil
	})

	return err
}

// deletionWithADeadMachine is a cluster with a machine that is not connected, and the plan that destroys both.
func deletionWithADeadMachine(t *testing.T) (*omnitest.FakeOmni, *Plan) {
	t.Helper()

	st := omnitest.NewFakeOmni()
	mustSync(t, st, omnitest.FullTemplate)
	omnitest.MachineIn(t, st, omnitest.Machine2, false)
	omnitest.MustCreate(t, st, siderolink.NewLink(omnitest.Machine2, nil))

	plan, err := Delete(t.Context(), st, "demo", DeleteOptions{DestroyMachines: true})
	if err != nil {
		t.Fatal(err)
	}

	return st, plan
}
