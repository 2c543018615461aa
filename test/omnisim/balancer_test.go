package omnisim_test

import (
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// TestLoadBalancerOfANewCluster checks the order: the load balancer reports healthy before its first check, while the
// machines report that they are ready; then the check finds no Kubernetes API; then Kubernetes answers. Before that
// there is no KubernetesUpgradeStatus. For a cluster that is created again, all of this starts anew.
func TestLoadBalancerOfANewCluster(t *testing.T) {
	sim := start(t, omnisim.Options{Manual: true})

	machines, err := sim.AddMachines(2)
	if err != nil {
		t.Fatal(err)
	}

	st := operator(t, sim)

	// seen is the state after a step: the load balancer, Omni's own assessment, and whether the upgrade status exists.
	type seen struct{ stopped, healthy, ready, upgrade bool }

	now := func() seen {
		balancer := get(t, func() (*omni.LoadBalancerStatus, error) {
			return safe.StateGetByID[*omni.LoadBalancerStatus](deadline(t), st, "alpha")
		})
		upgrade := get(t, func() (*omni.KubernetesUpgradeStatus, error) {
			return safe.StateGetByID[*omni.KubernetesUpgradeStatus](deadline(t), st, "alpha")
		})

		shown := seen{ready: isRunning(t, st), upgrade: upgrade != nil}
		if balancer != nil {
			shown.stopped, shown.healthy = balancer.TypedSpec().Value.Stopped, balancer.TypedSpec().Value.Healthy
		}

		return shown
	}

	for range 2 {
		// The order needs both machines to begin with the same step, however long the template takes to be written.
		sim.Pause()
		apply(deadline(t), t, st, listed("alpha", machines[0], machines[1]))
		sim.Resume()

		stepUntil(t, sim, "stopped", func() bool { return now() == seen{stopped: true} })
		stepUntil(t, sim, "the first word", func() bool { return now().healthy })
		stepUntil(t, sim, "all seems to be well", func() bool { return now() == seen{healthy: true, ready: true} })
		stepUntil(t, sim, "nobody was found", func() bool { return now() == seen{} })
		stepUntil(t, sim, "Kubernetes answers", func() bool { return now() == seen{healthy: true, ready: true, upgrade: true} })

		if _, err := st.Teardown(deadline(t), omni.NewCluster("alpha").Metadata()); err != nil {
			t.Fatal(err)
		}

		stepUntil(t, sim, "gone", func() bool { return now() == seen{} })
		sim.Step()
	}
}
