package omnisim_test

import (
	"fmt"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// listed returns a template with one listed control plane and one listed worker.
func listed(cluster, controlPlane, worker string) string {
	return fmt.Sprintf(`kind: Cluster
name: %s
kubernetes:
  version: v1.35.1
talos:
  version: v1.13.5
patches:
  - name: hosts
    inline: |
      machine:
        sysctls:
          net.core.somaxconn: "65535"
---
kind: ControlPlane
machines:
  - %s
---
kind: Workers
machines:
  - %s
---
kind: Machine
name: %[3]s
`, cluster, controlPlane, worker)
}

// running reports whether a cluster runs. Phase and Ready alone are not enough: a cluster whose empty worker set
// arrived before its control plane is RUNNING and Ready for a moment.
func running(s *omni.ClusterStatus) bool {
	spec := s.TypedSpec().Value

	return spec.Phase == specs.ClusterStatusSpec_RUNNING && spec.Ready && spec.ControlplaneReady && spec.KubernetesAPIReady
}

func TestClusterRunsAndGoes(t *testing.T) {
	sim := start(t, omnisim.Options{})
	ctx, st := deadline(t), operator(t, sim)

	machines, err := sim.AddMachines(2)
	if err != nil {
		t.Fatal(err)
	}

	text := listed("alpha", machines[0], machines[1])
	if writes := apply(ctx, t, st, text); writes != 6 {
		t.Errorf("the first sync wrote %d resources, want 6", writes)
	}

	final := waitFor(ctx, t, st, omni.NewClusterStatus("alpha"), running).TypedSpec().Value
	if final.Machines.Total != 2 || final.Machines.Healthy != 2 || final.Machines.Connected != 2 || final.Machines.Requested != 2 {
		t.Errorf("machines %v, want 2 of each", final.Machines)
	}

	if !final.Available || !final.ControlplaneReady || !final.KubernetesAPIReady {
		t.Errorf("status %v, want available, control plane and API ready", final)
	}

	if writes := apply(ctx, t, st, text); writes != 0 {
		t.Errorf("a second sync wrote %d resources, want none", writes)
	}

	destroy(ctx, t, st, "alpha")
	waitGone(ctx, t, st, omni.NewCluster("alpha").Metadata())
	waitGone(ctx, t, st, omni.NewClusterStatus("alpha").Metadata())

	for _, id := range machines {
		waitFor(ctx, t, st, omni.NewMachineStatus(id), func(machine *omni.MachineStatus) bool {
			_, available := machine.Metadata().Labels().Get(omni.MachineStatusLabelAvailable)

			return available && machine.TypedSpec().Value.Cluster == ""
		})
	}

	// Nothing of the cluster is left.
	patches, err := safe.StateListAll[*omni.ConfigPatch](ctx, sim.Unchecked())
	if err != nil || patches.Len() != 0 {
		t.Errorf("%d patches left (%v), want none", patches.Len(), err)
	}

	for _, ptr := range []resource.Pointer{
		omni.NewClusterUUID("alpha").Metadata(), omni.NewLoadBalancerStatus("alpha").Metadata(),
		omni.NewTalosUpgradeStatus("alpha").Metadata(), omni.NewMachineSetStatus("alpha-workers").Metadata(),
		omni.NewClusterMachineStatus(machines[0]).Metadata(),
	} {
		waitGone(ctx, t, sim.Unchecked(), ptr)
	}
}
