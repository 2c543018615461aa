package omnisim_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// twoSets returns a template with one control plane and two sets of listed workers.
func twoSets(controlPlane, first, second string) string {
	return fmt.Sprintf(`kind: Cluster
name: moves
kubernetes:
  version: v1.35.1
talos:
  version: v1.13.5
---
kind: ControlPlane
machines: [%s]
---
kind: Workers
name: first
machines: [%s]
---
kind: Workers
name: second
machines: [%s]
`, controlPlane, first, second)
}

// TestMachineMovesToAnotherSet checks that a machine that moves to another set is first wiped by the old set and then
// joins the new one, as in Omni, where the new set cannot create the ClusterMachine before the old one is destroyed.
func TestMachineMovesToAnotherSet(t *testing.T) {
	// Wiping has to take longer than the test needs to move the machine.
	sim := start(t, omnisim.Options{Phase: 10 * phase})
	ctx, st := deadline(t), operator(t, sim)

	machines, err := sim.AddMachines(2)
	if err != nil {
		t.Fatal(err)
	}

	apply(ctx, t, st, twoSets(machines[0], machines[1], ""))
	waitFor(ctx, t, st, omni.NewClusterStatus("moves"), healthy(2))

	before, err := st.Get(ctx, omni.NewClusterMachine(machines[1]).Metadata())
	if err != nil {
		t.Fatal(err)
	}

	apply(ctx, t, st, twoSets(machines[0], "", ""))
	waitGone(ctx, t, st, omni.NewMachineSetNode(machines[1], omni.NewMachineSet("")).Metadata())
	apply(ctx, t, st, twoSets(machines[0], "", machines[1]))
	waitFor(ctx, t, st, omni.NewMachineSetStatus("moves-second"), func(s *omni.MachineSetStatus) bool {
		return s.TypedSpec().Value.Ready && s.TypedSpec().Value.Machines.Healthy == 1 && s.TypedSpec().Value.Machines.Total == 1
	})
	waitFor(ctx, t, st, omni.NewMachineSetStatus("moves-first"), func(s *omni.MachineSetStatus) bool {
		return s.TypedSpec().Value.Ready && s.TypedSpec().Value.Machines.Total == 0
	})
	waitFor(ctx, t, st, omni.NewClusterStatus("moves"), healthy(2))

	after, err := st.Get(ctx, omni.NewClusterMachine(machines[1]).Metadata())
	if err != nil {
		t.Fatal(err)
	}

	if set, _ := after.Metadata().Labels().Get(omni.LabelMachineSet); set != "moves-second" || after.Metadata().Created().Equal(before.Metadata().Created()) {
		t.Errorf("the machine is in %q since %s, want it made anew in moves-second after %s", set, after.Metadata().Created(), before.Metadata().Created())
	}

	if nodes := nodesOf(t, st, "moves-second"); !slices.Equal(nodes, machines[1:]) {
		t.Errorf("nodes of the second set: %v", nodes)
	}
}
