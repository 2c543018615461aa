package contract

import (
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/uuid"

	"github.com/siderolabs/omni/client/pkg/omni/resources"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// collisions tests that a cluster cannot take another cluster's resource, whether a machine or the ID of a set. When
// the first cluster is deleted, both become free before the cluster is gone, and a watch reports that.
func (s *suite) collisions(t *testing.T) {
	ctx, st := deadline(t), s.as(t, "Operator")
	machine, first := uuid.NewString(), unique("first")
	second := first + "-more" // so that first's set more-workers and second's set workers have one ID

	for _, name := range []string{first, second} {
		cluster := newCluster(name)
		s.create(t, cluster)
		s.settle(t, cluster)
	}

	held, shared := newSet(first, "workers", omni.LabelWorkerRole), newSet(first, "more-workers", omni.LabelWorkerRole)
	other, twin := newSet(second, "others", omni.LabelWorkerRole), newSet(second, "workers", omni.LabelWorkerRole)

	for _, res := range []resource.Resource{held, shared, other, labelled(newNode(machine, held), first)} {
		s.create(t, res)
	}

	t.Run("machine of another cluster", func(t *testing.T) {
		wantError(t, st.Create(ctx, labelled(newNode(machine, other), second)), "AlreadyExists", "already exists")
	})

	t.Run("set of the same ID", func(t *testing.T) {
		wantError(t, st.Create(ctx, twin), "AlreadyExists", "already exists")
	})

	events := make(chan state.Event)
	kind := resource.NewMetadata(resources.DefaultNamespace, omni.MachineSetNodeType, "", resource.VersionUndefined)

	if err := st.WatchKind(ctx, kind, events, state.WithBootstrapContents(true)); err != nil {
		t.Fatal(err)
	}

	if _, err := st.Teardown(ctx, omni.NewCluster(first).Metadata()); err != nil {
		t.Fatal(err)
	}

	expect(t, func() state.Event {
		select {
		case event := <-events:
			return event
		case <-ctx.Done():
			t.Fatal("nobody tells that the machine is free")

			return state.Event{}
		}
	}, state.Destroyed, machine, state.Noop)

	t.Run("free again", func(t *testing.T) {
		s.gone(t, shared.Metadata())
		s.create(t, labelled(newNode(machine, other), second))
		s.create(t, twin)
	})

	s.gone(t, omni.NewCluster(first).Metadata())
	s.remove(t, omni.NewCluster(second).Metadata())
}
