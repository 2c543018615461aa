package contract

import (
	"fmt"
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// moves tests that a machine that leaves a set can join another one as soon as its node is gone, and that the sets'
// statuses follow: the first set no longer counts it.
func (s *suite) moves(t *testing.T) {
	ctx, st, name := deadline(t), s.as(t, "Operator"), unique("moves")
	machine := fmt.Sprintf("22222222-2222-2222-2222-%012x", len(name))

	apply(ctx, t, st, plan(ctx, t, st, document(name, "workers")))
	s.settle(t, omni.NewCluster(name))

	first, second := newSet(name, "first", omni.LabelWorkerRole), newSet(name, "second", omni.LabelWorkerRole)
	node := labelled(newNode(machine, first), name)

	s.create(t, first)
	s.create(t, second)
	s.create(t, node)
	s.requested(t, first, 1)

	t.Run("while it is there", func(t *testing.T) {
		if err := st.Create(ctx, labelled(newNode(machine, second), name)); err == nil {
			t.Error("one machine is in two sets")
		}
	})

	s.remove(t, node.Metadata())
	s.create(t, labelled(newNode(machine, second), name))
	s.requested(t, second, 1)
	s.requested(t, first, 0)
	s.remove(t, omni.NewCluster(name).Metadata())
}

// requested waits until the status of a set requests that many machines.
func (s *suite) requested(t *testing.T, set *omni.MachineSet, want uint32) {
	t.Helper()

	id := set.Metadata().ID()

	s.eventually(t, fmt.Sprintf("%d machines asked for in %s", want, id), func() bool {
		current, err := safe.StateGetByID[*omni.MachineSetStatus](deadline(t), s.admin.Omni().State(), id)

		return err == nil && current.TypedSpec().Value.GetMachines().GetRequested() == want && current.TypedSpec().Value.GetMachines().GetHealthy() == 0
	})
}
