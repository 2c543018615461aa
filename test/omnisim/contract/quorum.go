package contract

import (
	"fmt"
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// quorum tests that Omni refuses no removal from a control plane, not even that of its only machine, and that the machine stays in the
// cluster all the same, as long as nothing says that etcd can do without it. Here the load balancer is not healthy: no machine is there.
// What etcd's members change needs machines, and is tested in package omnisim.
func (s *suite) quorum(t *testing.T) {
	ctx, st, name := deadline(t), s.as(t, "Operator"), unique("quorum")
	only := fmt.Sprintf("11111111-1111-1111-1111-%012x", len(name))
	other := fmt.Sprintf("33333333-3333-3333-3333-%012x", len(name))

	apply(ctx, t, st, plan(ctx, t, st, document(name, "workers")))
	s.settle(t, omni.NewCluster(name))

	set := newSet(name, "control-planes", omni.LabelControlPlaneRole)
	s.inCluster(t, only, set)

	s.create(t, labelled(newNode(other, set), name))
	s.inCluster(t, other, set)
	s.remove(t, omni.NewMachineSetNode(only, set).Metadata())
	s.requested(t, set, 1)
	s.inCluster(t, only, set)
	s.remove(t, omni.NewCluster(name).Metadata())
	s.gone(t, omni.NewClusterMachine(only).Metadata())
}

// inCluster waits until a machine belongs to a set.
func (s *suite) inCluster(t *testing.T, machine string, set *omni.MachineSet) {
	t.Helper()

	s.eventually(t, machine+" in "+set.Metadata().ID(), func() bool {
		found, err := safe.StateGetByID[*omni.ClusterMachine](deadline(t), s.admin.Omni().State(), machine)
		if err != nil {
			return false
		}

		in, _ := found.Metadata().Labels().Get(omni.LabelMachineSet)

		return in == set.Metadata().ID()
	})
}
