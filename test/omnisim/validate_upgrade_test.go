package omnisim_test

import (
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

const (
	together        = "the Talos and Kubernetes versions cannot be updated at the same time"
	whileTalos      = "the Kubernetes version cannot be updated while a Talos upgrade is in progress"
	whileKubernetes = "the Talos version cannot be updated while a Kubernetes upgrade is in progress"
)

// setVersions changes the versions of the cluster alpha.
func setVersions(t *testing.T, st state.State, talos, kubernetes string) error {
	t.Helper()

	_, err := safe.StateUpdateWithConflicts(deadline(t), st, omni.NewCluster("alpha").Metadata(), func(cluster *omni.Cluster) error {
		cluster.TypedSpec().Value.TalosVersion, cluster.TypedSpec().Value.KubernetesVersion = talos, kubernetes

		return nil
	})

	return err
}

// upgradePhases returns the phases of the cluster's upgrades.
func upgradePhases(t *testing.T, st state.State) (specs.TalosUpgradeStatusSpec_Phase, specs.KubernetesUpgradeStatusSpec_Phase) {
	t.Helper()

	talos, err := safe.StateGetByID[*omni.TalosUpgradeStatus](deadline(t), st, "alpha")
	if err != nil {
		t.Fatal(err)
	}

	kubernetes, err := safe.StateGetByID[*omni.KubernetesUpgradeStatus](deadline(t), st, "alpha")
	if err != nil {
		t.Fatal(err)
	}

	return talos.TypedSpec().Value.GetPhase(), kubernetes.TypedSpec().Value.GetPhase()
}

// TestConcurrentUpgradesRefused changes versions one after the other in an Omni that takes one at a time.
func TestConcurrentUpgradesRefused(t *testing.T) {
	sim, _, _ := manualCluster(t, func(options *omnisim.Options) { options.RefuseConcurrentUpgrades = true })
	st := sim.State()

	set := func(talos, kubernetes, refusal string) {
		t.Helper()

		if err := setVersions(t, st, talos, kubernetes); refusal != "" {
			wantRefused(t, err, refusal)
		} else if err != nil {
			t.Errorf("Talos %s and Kubernetes %s: %v", talos, kubernetes, err)
		}
	}
	done := func() {
		t.Helper()
		stepUntil(t, sim, "done", func() bool {
			talos, kubernetes := upgradePhases(t, st)

			return talos == specs.TalosUpgradeStatusSpec_Done && kubernetes == specs.KubernetesUpgradeStatusSpec_Done && isRunning(t, st)
		})
	}

	if _, phase := upgradePhases(t, st); phase == specs.KubernetesUpgradeStatusSpec_Done {
		t.Fatal("Kubernetes is set up already")
	}

	set("1.13.4", "1.35.1", "")
	done()

	set("1.13.3", "1.35.4", together)
	set("1.13.3", "1.35.1", "")
	set("1.13.3", "1.35.4", whileTalos)
	stepUntil(t, sim, "upgrading", func() bool {
		talos, _ := upgradePhases(t, st)

		return talos == specs.TalosUpgradeStatusSpec_Upgrading
	})
	set("1.13.3", "1.35.4", whileTalos)
	set("1.13.4", "1.35.1", "") // back
	set("1.13.4", "1.35.4", whileTalos)
	done()

	set("1.13.4", "1.35.4", "")
	set("1.13.5", "1.35.4", whileKubernetes) // before it has begun
	sim.Step()
	set("1.13.5", "1.35.4", whileKubernetes)
	set("1.13.4", "1.35.5", "")
	done()
	set("1.13.5", "1.35.5", "")
}

// TestConcurrentUpgrades changes both versions at once, and again during the upgrades, in an Omni of release 1.9.3.
func TestConcurrentUpgrades(t *testing.T) {
	sim, _, _ := manualCluster(t)
	st := sim.State()

	for _, versions := range [][2]string{{"1.13.4", "1.35.4"}, {"1.13.4", "1.35.5"}, {"1.13.3", "1.35.5"}} {
		if err := setVersions(t, st, versions[0], versions[1]); err != nil {
			t.Errorf("%v: %v", versions, err)
		}

		sim.Step()
	}
}
