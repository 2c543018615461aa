package omnicluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// netPatch is the ID of a patch that keeps it wherever it is: what omnictl exports has one for each.
const netPatch = "400-net"

// patched gives a worker set the patch, under an ID.
func patched(workers *v1alpha1.OmniWorkers, id string) *v1alpha1.OmniWorkers {
	workers.Spec.Patches = []v1alpha1.Patch{{IDOverride: id, Inline: &v1alpha1.FreeForm{Raw: []byte(`{"machine":{"sysctls":{"vm.swappiness":"1"}}}`)}}}

	return workers
}

// listing returns a worker set with listed machines.
func listing(name string, machines ...string) *v1alpha1.OmniWorkers {
	workers := newWorkers(name, "", 0)
	workers.Spec.MachineSetMachines = v1alpha1.MachineSetMachines{Machines: machines}

	return workers
}

// withPatchedSet is a fixture with a cluster that runs and has a worker set "w" with the patch.
func withPatchedSet(t *testing.T, workers func(*fixture) *v1alpha1.OmniWorkers, policy v1alpha1.ChangePolicy) *fixture {
	t.Helper()

	f := newFixture(t, newCluster())
	f.create(newControlPlane("cp", f.machines[0]), patched(workers(f), netPatch))
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = policy })
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()

	return f
}

// patchIn returns the machine set that a patch is of in Omni; empty if there is no such patch.
func (f *fixture) patchIn(id string) string {
	f.t.Helper()

	patch, err := safe.StateGetByID[*omnires.ConfigPatch](f.t.Context(), f.omni.State(), id)
	if state.IsNotFoundError(err) {
		return ""
	}

	if err != nil {
		f.t.Fatal(err)
	}

	set, _ := patch.Metadata().Labels().Get(omnires.LabelMachineSet)

	return set
}

// written returns the place in the journal of the last write of a resource; -1 if it was not written since.
func (f *fixture) written(verb, resourceType, id string) int {
	last := -1

	for i, write := range f.omni.Writes() {
		if write == (omnisim.Write{Time: write.Time, Who: write.Who, Verb: verb, Type: resourceType, ID: id}) {
			last = i
		}
	}

	return last
}

// joined runs until Omni has one machine in a set.
func (f *fixture) joined(set string) {
	f.t.Helper()
	f.eventually("the machine in the new set", func() string {
		f.run()

		return map[bool]string{true: fmt.Sprint(f.view().Machines)}[f.view().Machines[set] != 1]
	})
}

// A set is replaced by another that has the patch under the same ID. The old machines never run without it, neither before
// somebody approves nor before the settle time is over, and no half of the replacement is made. With an ID for each both
// have theirs.
func TestHazardPatchOfASetThatIsReplaced(t *testing.T) {
	for _, policy := range []v1alpha1.ChangePolicy{v1alpha1.ChangePolicyApply, v1alpha1.ChangePolicyConfirmDestructive} {
		t.Run(string(policy), func(t *testing.T) {
			f := withPatchedSet(t, func(*fixture) *v1alpha1.OmniWorkers { return newWorkers("w", machineClass, 2) }, policy)
			writes := f.remoteWrites()

			f.delete(newWorkers("w", machineClass, 2))
			f.create(patched(newWorkers("b", machineClass, 1), netPatch))

			cluster := f.until("Stalled", metav1.ConditionTrue, v1alpha1.ReasonCollision)
			says(t, message(cluster, "Stalled"), `ConfigPatch "400-net"`, `destroy MachineSet "demo-w" (pool/2 -> none)`, `create MachineSet "demo-b" (none -> pool/1)`,
				"give it another ID there")
			f.waits()

			if got := f.patchIn(netPatch); got != "demo-w" || f.remoteWrites() != writes {
				t.Fatalf("the patch is in %q after %v", got, f.omni.Writes()[writes:])
			}

			change(f, "b", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { patched(o, "401-net") })

			reason := map[v1alpha1.ChangePolicy]string{v1alpha1.ChangePolicyApply: v1alpha1.ReasonWaitingToSettle}[policy]
			f.until("Synced", metav1.ConditionFalse, reason)

			f.joined("demo-b")

			if old, added := f.patchIn(netPatch), f.patchIn("401-net"); old != "demo-w" || added != "demo-b" {
				t.Errorf("while the old set waits its patch is in %q, the other in %q", old, added)
			}

			if policy == v1alpha1.ChangePolicyConfirmDestructive {
				f.approvePlan()
			}

			f.advance(settleTime)
			f.until("Ready", metav1.ConditionTrue, "Running")

			if old := f.patchIn(netPatch); old != "" {
				t.Errorf("the old patch is in %q", old)
			}

			f.quiet()
		})
	}
}

// A set of listed machines is renamed, and its patch keeps the ID. The patch stays with the machines until the old set is
// gone, also when its destruction is approved, and is in the new set before the machines are.
func TestHazardPatchFollowsARenamedSet(t *testing.T) {
	f := withPatchedSet(t, func(f *fixture) *v1alpha1.OmniWorkers { return listing("w", f.machines[1]) }, v1alpha1.ChangePolicyConfirmDestructive)
	f.delete(listing("w"))
	f.create(patched(listing("b", f.machines[1]), netPatch))
	f.until("Stalled", metav1.ConditionTrue, v1alpha1.ReasonAwaitingApproval)
	f.waits()

	if got, view := f.patchIn(netPatch), f.view(); got != "demo-w" || view.Machines["demo-w"] != 1 || view.Machines["demo-b"] != 0 {
		t.Fatalf("before the approval the patch is in %q: %v", got, view)
	}

	f.omni.ForgetRequests()
	f.approvePlan()
	f.eventually("the machine in the new set", func() string {
		f.run()

		_, err := safe.StateGetByID[*omnires.MachineSet](t.Context(), f.omni.State(), "demo-w")
		if got := f.patchIn(netPatch); err == nil && got != "demo-w" && got != "" {
			t.Fatalf("the patch went to %q before the old set was gone", got)
		}

		return map[bool]string{true: fmt.Sprint(f.view().Machines)}[f.view().Machines["demo-b"] == 0]
	})
	f.until("Ready", metav1.ConditionTrue, "Running")

	joins := f.written("Create", omnires.MachineSetNodeType, f.machines[1])
	moves := max(f.written("Create", omnires.ConfigPatchType, netPatch), f.written("Update", omnires.ConfigPatchType, netPatch))

	if got := f.patchIn(netPatch); got != "demo-b" || moves < 0 || moves > joins {
		t.Errorf("the patch is in %q since write %d, the machine joined with %d: %v", got, moves, joins, f.omni.Writes())
	}

	f.quiet()
}

// machinesOf returns the machines of a set that Omni has not wiped yet, and those of them that it still lists there.
func (f *fixture) machinesOf(set string) (all, listed []string) {
	f.t.Helper()

	ofSet := state.WithLabelQuery(resource.LabelEqual(omnires.LabelMachineSet, set))

	statuses, err := safe.StateListAll[*omnires.ClusterMachineStatus](f.t.Context(), f.omni.State(), ofSet)
	if err != nil {
		f.t.Fatal(err)
	}

	nodes, err := safe.StateListAll[*omnires.MachineSetNode](f.t.Context(), f.omni.State(), ofSet)
	if err != nil {
		f.t.Fatal(err)
	}

	for status := range statuses.All() {
		all = append(all, status.Metadata().ID())
	}

	for node := range nodes.All() {
		listed = append(listed, node.Metadata().ID())
	}

	return all, listed
}

// leavesIn runs until Omni does not list one of two machines in a set any more, and returns it. The patch stays meanwhile.
func (f *fixture) leavesIn(set string) (machine string) {
	f.t.Helper()
	f.eventually("a machine to leave "+set, func() string {
		f.run()

		if got := f.patchIn(netPatch); got != set {
			f.t.Fatalf("the patch went to %q before a machine had left", got)
		}

		all, listed := f.machinesOf(set)
		for _, one := range all {
			if !slices.Contains(listed, one) {
				machine = one
			}
		}

		return map[bool]string{true: fmt.Sprint(listed)}[machine == ""]
	})

	return machine
}

// A set that stays loses a machine. Omni takes that off its list long before it is wiped: a patch that goes elsewhere stays
// with it until then, and the message names a machine that Omni cannot wipe.
func TestHazardPatchStaysWithAMachineThatLeavesItsSet(t *testing.T) {
	for name, test := range map[string]struct {
		workers func(*fixture) *v1alpha1.OmniWorkers
		smaller func(*fixture) v1alpha1.MachineSetMachines
	}{
		"listed": {
			func(f *fixture) *v1alpha1.OmniWorkers { return listing("w", f.machines[1], f.machines[2]) },
			func(f *fixture) v1alpha1.MachineSetMachines {
				return listing("w", f.machines[1]).Spec.MachineSetMachines
			},
		},
		"of a class": {
			func(*fixture) *v1alpha1.OmniWorkers { return newWorkers("w", machineClass, 2) },
			func(*fixture) v1alpha1.MachineSetMachines {
				return newWorkers("w", machineClass, 1).Spec.MachineSetMachines
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := withPatchedSet(t, test.workers, v1alpha1.ChangePolicyApply)
			f.create(newWorkers("c", machineClass, 1))
			f.until("Ready", metav1.ConditionTrue, "Running")

			machines, _ := f.machinesOf("demo-w")
			for _, machine := range machines {
				f.omni.KillMachine(machine)
			}

			change(f, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.Patches, o.Spec.MachineSetMachines = nil, test.smaller(f) })
			change(f, "c", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { patched(o, netPatch) })
			f.until("Synced", metav1.ConditionFalse, v1alpha1.ReasonWaitingToSettle)

			// Omni has not chosen a machine of a class yet.
			f.omni.Pause()
			f.advance(settleTime)

			for range 3 {
				f.run()
			}

			f.omni.Resume()

			left := f.leavesIn("demo-w")

			f.eventually("the machine to be silent", func() string {
				f.advance(settleTime)
				f.run()

				said := message(f.get(), "Synced")

				return map[bool]string{true: said}[!strings.Contains(said, "machine "+left+" (not connected)")]
			})
			f.quiet()
			says(t, message(f.get(), "Synced"), `ConfigPatch "400-net"`, "machines that are to leave keep it until they are gone", left, "bring it back")

			if got := f.patchIn(netPatch); got != "demo-w" {
				t.Fatalf("the patch went to %q before the machine was wiped", got)
			}

			for _, machine := range machines {
				if err := f.omni.ReviveMachine(machine); err != nil {
					t.Fatal(err)
				}
			}

			f.eventually("the patch in its new place", func() string {
				f.run()

				got := f.patchIn(netPatch)
				if all, _ := f.machinesOf("demo-w"); got != "demo-w" && len(all) > 1 {
					t.Fatalf("the patch went to %q before the machine was wiped", got)
				}

				return map[bool]string{true: got}[got != "demo-c"]
			})
			f.until("Ready", metav1.ConditionTrue, "Running")
			f.quiet()
		})
	}
}

// Under a policy a patch leaves a running set in its turn, and the new set that has it from there gets its machine then.
func TestHazardPatchThatMovesWaitsForItsTurn(t *testing.T) {
	f := withPatchedSet(t, func(*fixture) *v1alpha1.OmniWorkers { return newWorkers("w", machineClass, 2) }, v1alpha1.ChangePolicyApply)
	f.govern()

	writes := f.remoteWrites()

	change(f, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.Patches = nil })
	f.create(patched(listing("b", f.machines[1]), netPatch))

	cluster := f.until(v1alpha1.ConditionHeld, metav1.ConditionTrue, "")
	if got, view := f.patchIn(netPatch), f.view(); got != "demo-w" || view.Machines["demo-b"] != 0 {
		t.Fatalf("before its turn the patch is in %q: %v", got, view)
	}

	if turn := f.turn(); !slices.Equal(turn.Kinds, []v1alpha1.ChangeKind{v1alpha1.ChangeMachineConfig}) || cluster.Status.Plan.Held != 2 {
		t.Errorf("%+v, %+v", turn, cluster.Status.Plan)
	}

	f.quiet()

	if diff := cmp.Diff(1, f.remoteWrites()-writes); diff != "" {
		t.Errorf("wrote more than the empty set: %v", f.omni.Writes()[writes:])
	}

	// A ticket comes back if the cluster is not Ready when it arrives; then the policy gives another.
	f.eventually("the turn", func() string {
		if f.turn().State == v1alpha1.RolloutHeld {
			f.advance(2 * time.Second)
			f.admit()
		}

		f.run()

		return noState(f.turn(), v1alpha1.RolloutAdmitted)
	})
	f.joined("demo-b")

	joins, moves := f.written("Create", omnires.MachineSetNodeType, f.machines[1]), f.written("Update", omnires.ConfigPatchType, netPatch)
	if got := f.patchIn(netPatch); got != "demo-b" || moves < 0 || moves > joins {
		t.Errorf("the patch is in %q since write %d, the machine joined with %d", got, moves, joins)
	}
}
