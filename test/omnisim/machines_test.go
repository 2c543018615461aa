package omnisim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/omni/resources/siderolink"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// classed returns a template whose sets take machines from a class; size is a number or "unlimited".
func classed(cluster, class, size string) string {
	return fmt.Sprintf(`kind: Cluster
name: %s
kubernetes:
  version: v1.35.1
talos:
  version: v1.13.5
---
kind: ControlPlane
machineClass:
  name: %s
  size: 1
---
kind: Workers
machineClass:
  name: %[2]s
  size: %s
`, cluster, class, size)
}

func nodesOf(t *testing.T, st state.State, set string) []string {
	t.Helper()

	list, err := safe.StateListAll[*omni.MachineSetNode](deadline(t), st, state.WithLabelQuery(resource.LabelEqual(omni.LabelMachineSet, set)))
	if err != nil {
		t.Fatal(err)
	}

	var ids []string
	for node := range list.All() {
		ids = append(ids, node.Metadata().ID())
	}

	return ids
}

func healthy(machines uint32) func(*omni.ClusterStatus) bool {
	return func(s *omni.ClusterStatus) bool {
		return running(s) && s.TypedSpec().Value.Machines.Healthy == machines && s.TypedSpec().Value.Machines.Total == machines
	}
}

func TestMachineClassScales(t *testing.T) {
	sim := start(t, omnisim.Options{Machines: 5})
	ctx, st := deadline(t), operator(t, sim)

	if err := sim.AddMachineClass("any", omni.MachineStatusLabelArch+" = amd64"); err != nil {
		t.Fatal(err)
	}

	apply(ctx, t, st, classed("beta", "any", "2"))
	waitFor(ctx, t, st, omni.NewClusterStatus("beta"), healthy(3))

	node, err := st.Get(ctx, omni.NewMachineSetNode(nodesOf(t, st, "beta-workers")[0], omni.NewMachineSet("")).Metadata())
	if err != nil {
		t.Fatal(err)
	}

	if _, ok := node.Metadata().Labels().Get(omni.LabelManagedByMachineSetNodeController); !ok || node.Metadata().Owner() != "" {
		t.Errorf("node %v, want the label of the machine set node controller and no owner", node.Metadata())
	}

	if writes := apply(ctx, t, st, classed("beta", "any", "2")); writes != 0 {
		t.Errorf("%d writes with nothing changed, want none", writes)
	}

	apply(ctx, t, st, classed("beta", "any", "unlimited"))
	waitFor(ctx, t, st, omni.NewClusterStatus("beta"), healthy(5))

	// The set also takes a machine that connects later.
	if _, err = sim.AddMachines(1); err != nil {
		t.Fatal(err)
	}

	waitFor(ctx, t, st, omni.NewClusterStatus("beta"), healthy(6))
	apply(ctx, t, st, classed("beta", "any", "1"))
	waitFor(ctx, t, st, omni.NewClusterStatus("beta"), healthy(2))

	if nodes := nodesOf(t, st, "beta-workers"); len(nodes) != 1 {
		t.Errorf("nodes %v after scaling to 1", nodes)
	}
}

func TestClassWithoutEnoughMachines(t *testing.T) {
	sim := start(t, omnisim.Options{Machines: 1})
	ctx, st := deadline(t), operator(t, sim)

	if err := sim.AddMachineClass("any", omni.MachineStatusLabelArch+" = amd64"); err != nil {
		t.Fatal(err)
	}

	apply(ctx, t, st, classed("gamma", "any", "1"))

	short := waitFor(ctx, t, st, omni.NewClusterStatus("gamma"), func(s *omni.ClusterStatus) bool {
		return s.TypedSpec().Value.Machines.Healthy == 1
	}).TypedSpec().Value

	if short.Phase != specs.ClusterStatusSpec_SCALING_UP || short.Ready || short.Machines.Requested != 2 {
		t.Errorf("status %v, want scaling up to 2 machines", short)
	}
}

func TestUnknownMachineIsWaitedFor(t *testing.T) {
	sim := start(t, omnisim.Options{})
	ctx, st := deadline(t), operator(t, sim)

	const late = "22222222-2222-2222-2222-222222222222"

	machines, err := sim.AddMachines(1)
	if err != nil {
		t.Fatal(err)
	}

	apply(ctx, t, st, listed("delta", machines[0], late))
	waitFor(ctx, t, st, omni.NewClusterStatus("delta"), func(s *omni.ClusterStatus) bool {
		return s.TypedSpec().Value.Machines.Healthy == 1 && !s.TypedSpec().Value.Ready
	})

	missing := waitFor(ctx, t, st, omni.NewClusterMachineStatus(late), func(*omni.ClusterMachineStatus) bool { return true })
	if spec := missing.TypedSpec().Value; spec.Stage != specs.ClusterMachineStatusSpec_UNKNOWN || !spec.IsRemoved {
		t.Errorf("status %v of a machine that never was, want unknown and removed", spec)
	}

	time.Sleep(10 * phase) // until the engine is idle

	if _, err = sim.AddMachine(omnisim.Machine{ID: late}); err != nil {
		t.Fatal(err)
	}

	// The node does not change, so the machine's arrival alone must be enough.
	waitFor(ctx, t, st, omni.NewClusterStatus("delta"), healthy(2))
}

func TestDeadMachineBlocksDeletion(t *testing.T) {
	sim := start(t, omnisim.Options{})
	ctx, st := deadline(t), operator(t, sim)

	machines, err := sim.AddMachines(2)
	if err != nil {
		t.Fatal(err)
	}

	apply(ctx, t, st, listed("epsilon", machines[0], machines[1]))
	waitFor(ctx, t, st, omni.NewClusterStatus("epsilon"), healthy(2))

	sim.KillMachine(machines[1])
	destroy(ctx, t, st, "epsilon")

	dead := waitFor(ctx, t, st, omni.NewMachineStatus(machines[1]), func(machine *omni.MachineStatus) bool {
		_, ok := machine.Metadata().Labels().Get(omni.MachineStatusLabelDisconnected)

		return ok
	})

	// A client finds what blocks in the same way: disconnected machines of the cluster.
	if cluster, _ := dead.Metadata().Labels().Get(omni.LabelCluster); cluster != "epsilon" || dead.TypedSpec().Value.Connected {
		t.Errorf("machine %v, want a disconnected one of the cluster", dead.Metadata())
	}

	if _, err = st.Get(ctx, omni.NewCluster("epsilon").Metadata()); err != nil {
		t.Fatalf("the cluster went although a machine does not answer: %v", err)
	}

	if _, err = st.Teardown(ctx, siderolink.NewLink(machines[1], nil).Metadata()); err != nil {
		t.Fatal(err)
	}

	waitGone(ctx, t, st, omni.NewCluster("epsilon").Metadata())
	waitGone(ctx, t, st, omni.NewMachineStatus(machines[1]).Metadata())
	waitGone(ctx, t, st, siderolink.NewLink(machines[1], nil).Metadata())
}

// TestShutDownMachineIsNotDisconnected checks that Omni shows a machine that was shut down as silent, and not as disconnected.
func TestShutDownMachineIsNotDisconnected(t *testing.T) {
	sim := start(t, omnisim.Options{})
	ctx, st := deadline(t), operator(t, sim)

	machines, err := sim.AddMachines(1)
	if err != nil {
		t.Fatal(err)
	}

	sim.ShutDownMachine(machines[0])

	silent := waitFor(ctx, t, st, omni.NewMachineStatus(machines[0]), func(machine *omni.MachineStatus) bool { return !machine.TypedSpec().Value.Connected })
	if _, disconnected := silent.Metadata().Labels().Get(omni.MachineStatusLabelDisconnected); disconnected {
		t.Error("it counts as disconnected")
	}

	if err = sim.ReviveMachine(machines[0]); err != nil {
		t.Fatal(err)
	}

	sim.KillMachine(machines[0])
	waitFor(ctx, t, st, omni.NewMachineStatus(machines[0]), func(machine *omni.MachineStatus) bool {
		_, disconnected := machine.Metadata().Labels().Get(omni.MachineStatusLabelDisconnected)

		return disconnected
	})
}

func TestRevivedMachineLetsDeletionGoOn(t *testing.T) {
	sim := start(t, omnisim.Options{})
	ctx, st := deadline(t), operator(t, sim)

	machines, err := sim.AddMachines(2)
	if err != nil {
		t.Fatal(err)
	}

	apply(ctx, t, st, listed("zeta", machines[0], machines[1]))
	waitFor(ctx, t, st, omni.NewClusterStatus("zeta"), healthy(2))

	// A dead control plane makes the API unavailable before Omni reports the machine as disconnected.
	sim.KillMachine(machines[0])
	waitFor(ctx, t, st, omni.NewLoadBalancerStatus("zeta"), func(lb *omni.LoadBalancerStatus) bool { return !lb.TypedSpec().Value.Healthy })

	destroy(ctx, t, st, "zeta")
	waitGone(ctx, t, st, omni.NewMachineSet("zeta-workers").Metadata())

	if err = sim.ReviveMachine(machines[0]); err != nil {
		t.Fatal(err)
	}

	waitGone(ctx, t, st, omni.NewCluster("zeta").Metadata())
}

func TestMachineVersions(t *testing.T) {
	sim := start(t, omnisim.Options{})
	ctx, st := deadline(t), operator(t, sim)

	cluster := omni.NewCluster("eta")
	cluster.TypedSpec().Value.TalosVersion, cluster.TypedSpec().Value.KubernetesVersion = "1.12.7", "1.35.1"

	set := omni.NewMachineSet("eta-control-planes")
	set.Metadata().Labels().Set(omni.LabelCluster, "eta")
	set.Metadata().Labels().Set(omni.LabelControlPlaneRole, "")

	for _, res := range []resource.Resource{cluster, set} {
		if err := st.Create(ctx, res); err != nil {
			t.Fatal(err)
		}
	}

	for _, test := range []struct {
		name    string
		machine omnisim.Machine
		code    string
		word    string
	}{
		{"newer", omnisim.Machine{TalosVersion: "1.13.5", Installed: true}, "InvalidArgument", "downgrade"},
		{"older and installed", omnisim.Machine{TalosVersion: "1.11.6", Installed: true}, "", ""},
		{"older and not installed", omnisim.Machine{TalosVersion: "1.11.6"}, "InvalidArgument", "without installation"},
		{"the same", omnisim.Machine{TalosVersion: "1.12.8"}, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			id, err := sim.AddMachine(test.machine)
			if err != nil {
				t.Fatal(err)
			}

			wantCode(t, st.Create(ctx, omni.NewMachineSetNode(id, set)), test.code, test.word)
		})
	}
}

func TestMachineLabels(t *testing.T) {
	sim := start(t, omnisim.Options{})
	ctx, st := deadline(t), operator(t, sim)

	var east []string

	for _, site := range []string{"east", "west", "east"} {
		id, err := sim.AddMachine(omnisim.Machine{Labels: map[string]string{"site": site}})
		if err != nil {
			t.Fatal(err)
		}

		if site == "east" {
			east = append(east, id)
		}
	}

	if err := sim.AddMachineClass("east", "site = east"); err != nil {
		t.Fatal(err)
	}

	apply(ctx, t, st, classed("theta", "east", "1"))
	waitFor(ctx, t, st, omni.NewClusterStatus("theta"), healthy(2))

	got := append(nodesOf(t, st, "theta-control-planes"), nodesOf(t, st, "theta-workers")...)
	slices.Sort(got)
	slices.Sort(east)

	if !slices.Equal(got, east) {
		t.Errorf("machines %v, want those in the east, %v", got, east)
	}
}
