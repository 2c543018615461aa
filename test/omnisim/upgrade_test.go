package omnisim_test

import (
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// stepUntil advances a bounded number of phases until the condition holds.
func stepUntil(t *testing.T, sim *omnisim.Server, what string, condition func() bool) int {
	t.Helper()

	const bound = 40

	for steps := range bound {
		if condition() {
			return steps
		}

		sim.Step()
	}

	t.Fatalf("not within %d phases: %s", bound, what)

	return 0
}

func get[T interface {
	*omni.ClusterStatus | *omni.TalosUpgradeStatus | *omni.KubernetesUpgradeStatus | *omni.MachineSetStatus | *omni.ClusterMachineStatus |
		*omni.LoadBalancerStatus
	comparable
}](t *testing.T, read func() (T, error)) T {
	t.Helper()

	found, err := read()
	if err != nil && !state.IsNotFoundError(err) {
		t.Fatal(err)
	}

	return found
}

// manualCluster returns a running cluster of two machines with a stopped clock.
func manualCluster(t *testing.T, options ...func(*omnisim.Options)) (*omnisim.Server, state.State, []string) {
	t.Helper()

	manual := omnisim.Options{Manual: true}
	for _, option := range options {
		option(&manual)
	}

	sim := start(t, manual)

	machines, err := sim.AddMachines(2)
	if err != nil {
		t.Fatal(err)
	}

	st := operator(t, sim)
	apply(deadline(t), t, st, listed("alpha", machines[0], machines[1]))

	if steps := stepUntil(t, sim, "running", func() bool { return isRunning(t, st) }); steps < 3 {
		t.Errorf("running after %d phases, want a few", steps)
	}

	// A new cluster seems to run before Kubernetes answers.
	stepUntil(t, sim, "answered", func() bool {
		upgrade := get(t, func() (*omni.KubernetesUpgradeStatus, error) {
			return safe.StateGetByID[*omni.KubernetesUpgradeStatus](deadline(t), st, "alpha")
		})

		return upgrade != nil && isRunning(t, st)
	})

	return sim, st, machines
}

func isRunning(t *testing.T, st state.State) bool {
	t.Helper()

	status := get(t, func() (*omni.ClusterStatus, error) {
		return safe.StateGetByID[*omni.ClusterStatus](deadline(t), st, "alpha")
	})

	return status != nil && running(status)
}

func TestTimeStandsStill(t *testing.T) {
	sim := start(t, omnisim.Options{Manual: true})
	st := operator(t, sim)
	machines, _ := sim.AddMachines(2)

	apply(deadline(t), t, st, listed("alpha", machines[0], machines[1]))

	// Finalizers and statuses need no time; the UUID does.
	waitFor(deadline(t), t, st, omni.NewClusterStatus("alpha"), func(*omni.ClusterStatus) bool { return true })

	if _, err := st.Get(deadline(t), omni.NewClusterUUID("alpha").Metadata()); !state.IsNotFoundError(err) {
		t.Errorf("the cluster has a UUID before time passed: %v", err)
	}

	sim.Step()

	if _, err := st.Get(deadline(t), omni.NewClusterUUID("alpha").Metadata()); err != nil {
		t.Errorf("no UUID after a phase: %v", err)
	}

	if isRunning(t, st) {
		t.Error("the cluster runs after one phase")
	}
}

func TestTalosUpgrade(t *testing.T) {
	sim, st, machines := manualCluster(t)
	upgrade := func() *specs.TalosUpgradeStatusSpec {
		return get(t, func() (*omni.TalosUpgradeStatus, error) {
			return safe.StateGetByID[*omni.TalosUpgradeStatus](deadline(t), st, "alpha")
		}).TypedSpec().Value
	}

	if spec := upgrade(); spec.Phase != specs.TalosUpgradeStatusSpec_Done || spec.LastUpgradeVersion != "1.13.5" {
		t.Fatalf("upgrade status %v of a new cluster, want done at 1.13.5", spec)
	}

	older := strings.Replace(listed("alpha", machines[0], machines[1]), "v1.13.5", "v1.13.3", 1)
	if writes := apply(deadline(t), t, st, older); writes != 1 {
		t.Fatalf("%d writes, want the cluster", writes)
	}

	stepUntil(t, sim, "upgrading", func() bool { return upgrade().Phase == specs.TalosUpgradeStatusSpec_Upgrading })

	if spec := upgrade(); spec.CurrentUpgradeVersion != "1.13.3" || spec.LastUpgradeVersion != "1.13.5" {
		t.Errorf("upgrade status %v, want from 1.13.5 to 1.13.3", spec)
	}

	// One machine at a time, never both.
	stepUntil(t, sim, "done", func() bool {
		busy := 0

		for _, id := range machines {
			status := get(t, func() (*omni.ClusterMachineStatus, error) {
				return safe.StateGetByID[*omni.ClusterMachineStatus](deadline(t), st, id)
			})
			if status.TypedSpec().Value.Stage != specs.ClusterMachineStatusSpec_RUNNING {
				busy++
			}
		}

		if busy > 1 {
			t.Error("both machines are being upgraded")
		}

		return upgrade().Phase == specs.TalosUpgradeStatusSpec_Done
	})

	for _, id := range machines {
		machine, err := safe.StateGetByID[*omni.MachineStatus](deadline(t), st, id)
		if err != nil || machine.TypedSpec().Value.TalosVersion != "v1.13.3" {
			t.Errorf("machine %s: %v, %v, want Talos 1.13.3", id, machine, err)
		}
	}

	stepUntil(t, sim, "running again", func() bool { return isRunning(t, st) })
}

func TestKubernetesUpgrade(t *testing.T) {
	sim, st, machines := manualCluster(t)
	upgrade := func() *specs.KubernetesUpgradeStatusSpec {
		return get(t, func() (*omni.KubernetesUpgradeStatus, error) {
			return safe.StateGetByID[*omni.KubernetesUpgradeStatus](deadline(t), st, "alpha")
		}).TypedSpec().Value
	}

	stepUntil(t, sim, "first version", func() bool { return upgrade().Phase == specs.KubernetesUpgradeStatusSpec_Done })

	newer := strings.Replace(listed("alpha", machines[0], machines[1]), "v1.35.1", "v1.36.1", 1)
	apply(deadline(t), t, st, newer)
	stepUntil(t, sim, "upgrading", func() bool { return upgrade().Phase == specs.KubernetesUpgradeStatusSpec_Upgrading })

	// The cluster's own status does not show the upgrade.
	if spec := upgrade(); spec.CurrentUpgradeVersion != "1.36.1" || spec.LastUpgradeVersion != "1.35.1" || !isRunning(t, st) {
		t.Errorf("upgrade status %v, want from 1.35.1 to 1.36.1 while the cluster runs", spec)
	}

	stepUntil(t, sim, "done", func() bool { return upgrade().Phase == specs.KubernetesUpgradeStatusSpec_Done })

	if spec := upgrade(); spec.LastUpgradeVersion != "1.36.1" || spec.CurrentUpgradeVersion != "" {
		t.Errorf("upgrade status %v, want done at 1.36.1", spec)
	}
}

func TestPatchReconfigures(t *testing.T) {
	sim, st, machines := manualCluster(t)

	other := strings.Replace(listed("alpha", machines[0], machines[1]), "65535", "1024", 1)
	apply(deadline(t), t, st, other)

	set := func() *specs.MachineSetStatusSpec {
		return get(t, func() (*omni.MachineSetStatus, error) {
			return safe.StateGetByID[*omni.MachineSetStatus](deadline(t), st, "alpha-workers")
		}).TypedSpec().Value
	}

	stepUntil(t, sim, "reconfiguring", func() bool { return set().Phase == specs.MachineSetPhase_Reconfiguring })

	if isRunning(t, st) {
		t.Error("the cluster is ready while machines take a new configuration")
	}

	stepUntil(t, sim, "running", func() bool { return isRunning(t, st) })
}

func TestLockedMachineWaits(t *testing.T) {
	sim, st, machines := manualCluster(t)

	node, err := st.Get(deadline(t), omni.NewMachineSetNode(machines[1], omni.NewMachineSet("")).Metadata())
	if err != nil {
		t.Fatal(err)
	}

	node.Metadata().Annotations().Set(omni.MachineLocked, "")

	if err = st.Update(deadline(t), node); err != nil {
		t.Fatal(err)
	}

	cluster, err := safe.StateGetByID[*omni.Cluster](deadline(t), st, "alpha")
	if err != nil {
		t.Fatal(err)
	}

	cluster.TypedSpec().Value.TalosVersion = "1.13.4"

	if err = st.Update(deadline(t), cluster); err != nil {
		t.Fatal(err)
	}

	for range 12 {
		sim.Step()
	}

	for id, want := range map[string]string{machines[0]: "v1.13.4", machines[1]: "v1.13.5"} {
		machine, getErr := safe.StateGetByID[*omni.MachineStatus](deadline(t), st, id)
		if getErr != nil || machine.TypedSpec().Value.TalosVersion != want {
			t.Errorf("machine %s has Talos %v (%v), want %s", id, machine.TypedSpec().Value.TalosVersion, getErr, want)
		}
	}

	set, err := safe.StateGetByID[*omni.MachineSetStatus](deadline(t), st, "alpha-workers")
	if err != nil || set.TypedSpec().Value.LockedUpdates != 1 {
		t.Errorf("machine set status %v (%v), want one locked update", set.TypedSpec().Value, err)
	}

	_, err = st.Teardown(deadline(t), node.Metadata())
	wantCode(t, err, "InvalidArgument", "machine set node is locked")
}
