package contract

import (
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/pkg/omni/resources"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// watches tests that a watch begins with the existing resources, marks their end, and goes on with changes.
func (s *suite) watches(t *testing.T) {
	ctx, st := deadline(t), s.as(t, "Reader")
	kind := resource.NewMetadata(resources.DefaultNamespace, omni.ClusterType, "", resource.VersionUndefined)

	before := newCluster(unique("watched"))
	s.create(t, before)

	single, batches := make(chan state.Event), make(chan []state.Event)

	if err := st.WatchKind(ctx, kind, single, state.WithBootstrapContents(true)); err != nil {
		t.Fatal(err)
	}

	if err := st.WatchKindAggregated(ctx, kind, batches, state.WithBootstrapContents(true)); err != nil {
		t.Fatal(err)
	}

	// Each next function returns the next event of its watch.
	var queue []state.Event

	nextSingle := func() state.Event {
		select {
		case event := <-single:
			return event
		case <-ctx.Done():
			t.Fatal("no event")

			return state.Event{}
		}
	}
	nextBatched := func() state.Event {
		for len(queue) == 0 {
			select {
			case queue = <-batches:
			case <-ctx.Done():
				t.Fatal("no events")
			}
		}

		event := queue[0]
		queue = queue[1:]

		return event
	}

	for name, next := range map[string]func() state.Event{"single": nextSingle, "aggregated": nextBatched} {
		t.Run(name, func(t *testing.T) {
			expect(t, next, state.Created, before.Metadata().ID(), state.Bootstrapped)

			for event := next(); event.Type != state.Bootstrapped; event = next() {
			}
		})
	}

	after := newCluster(unique("watched"))
	s.create(t, after)
	expect(t, nextSingle, state.Created, after.Metadata().ID(), state.Noop)
	expect(t, nextBatched, state.Created, after.Metadata().ID(), state.Noop)

	s.remove(t, after.Metadata())
	expect(t, nextSingle, state.Destroyed, after.Metadata().ID(), state.Noop)
	expect(t, nextBatched, state.Destroyed, after.Metadata().ID(), state.Noop)
	s.remove(t, before.Metadata())
}

// selections tests that a watch may leave out the requests for machines that are in use.
func (s *suite) selections(t *testing.T) {
	ctx, st := deadline(t), s.as(t, "Reader")
	kind := resource.NewMetadata(resources.DefaultNamespace, omni.ClusterMachineRequestStatusType, "", resource.VersionUndefined)
	events := make(chan state.Event)

	err := st.WatchKind(ctx, kind, events, state.WithBootstrapContents(true),
		state.WatchWithLabelQuery(resource.LabelExists(omni.LabelMachineRequestInUse, resource.NotMatches)))
	if err != nil {
		t.Fatal(err)
	}

	select {
	case event := <-events:
		if event.Type != state.Bootstrapped {
			t.Errorf("%v, %v: there is no provider", event.Type, event.Error)
		}
	case <-ctx.Done():
		t.Error("no event")
	}
}

// expect reads events until the wanted one, and fails at an event of a type that must not come before it.
func expect(t *testing.T, next func() state.Event, eventType state.EventType, id string, before state.EventType) {
	t.Helper()

	for {
		event := next()

		switch {
		case event.Type == state.Errored:
			t.Fatal(event.Error)
		case event.Type == eventType && event.Resource != nil && event.Resource.Metadata().ID() == id:
			return
		case event.Type == before && before != state.Noop:
			t.Fatalf("%v came before %v of %s", event.Type, eventType, id)
		}
	}
}
