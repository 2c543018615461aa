package contract

import (
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// balancer tests that the load balancer's first status for a cluster whose machines do not exist is "stopped". Its
// status with machines needs machines: package omnisim's own tests cover it.
func (s *suite) balancer(t *testing.T) {
	ctx, st, name := deadline(t), s.as(t, "Operator"), unique("balancer")

	apply(ctx, t, st, plan(ctx, t, st, document(name, "workers")))
	s.settle(t, omni.NewCluster(name))

	s.eventually(t, "the load balancer's first word about "+name, func() bool {
		said, err := safe.StateGetByID[*omni.LoadBalancerStatus](deadline(t), s.admin.Omni().State(), name)

		return err == nil && said.TypedSpec().Value.Stopped && !said.TypedSpec().Value.Healthy
	})

	if _, err := safe.StateGetByID[*omni.KubernetesUpgradeStatus](ctx, s.admin.Omni().State(), name); !state.IsNotFoundError(err) {
		t.Errorf("there is a Kubernetes upgrade status before Kubernetes is there: %v", err)
	}

	s.remove(t, omni.NewCluster(name).Metadata())
}
