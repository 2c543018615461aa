package mirror

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// TestLostWatchesAreHurried checks that after an outage the first watch that succeeds ends the pauses of the others,
// and so does ReopenWatches.
func TestLostWatchesAreHurried(t *testing.T) {
	for name, reopen := range map[string]func(*Mirror){
		"by another watch": func(m *Mirror) {
			_ = newWatchReader(m, omnires.MachineSetType, time.NewTimer(time.Hour)).complete()
		},
		"from outside": func(m *Mirror) { m.ReopenWatches() },
	} {
		t.Run(name, func(t *testing.T) {
			source := omnitest.NewFakeOmni()
			source.RefuseWatch(omnires.ClusterType, errors.New("away"))

			m := Start(t.Context(), source, Options{ResyncMinDelay: 600 * time.Millisecond, ResyncMaxDelay: time.Hour})
			defer m.Stop()

			// By then the pauses are longer than any timeout of the test.
			m.rests(t, omnires.ClusterType)
			source.RefuseWatch(omnires.ClusterType, nil)
			reopen(m)

			await.Until(t, "synced", m.Synced)
		})
	}
}

// unsteadyOmni loses each watch right after it was complete.
type unsteadyOmni struct {
	*omnitest.FakeOmni

	opened atomic.Int32
}

func (u *unsteadyOmni) WatchKind(ctx context.Context, _ resource.Kind, events chan<- state.Event, _ ...state.WatchKindOption) error {
	u.opened.Add(1)

	go func() {
		for _, event := range []state.Event{{Type: state.Bootstrapped}, {Type: state.Errored, Error: errors.New("away")}} {
			select {
			case <-ctx.Done():
				return
			case events <- event:
			}
		}
	}()

	return nil
}

// TestWatchesLostAtOnceRest: watches that do not last longer each time do not end their own or each other's pauses.
func TestWatchesLostAtOnceRest(t *testing.T) {
	source := &unsteadyOmni{FakeOmni: omnitest.NewFakeOmni()}

	m := Start(t.Context(), source, Options{ResyncMinDelay: 10 * time.Millisecond, ResyncMaxDelay: time.Hour})
	defer m.Stop()

	time.Sleep(2 * time.Second)

	// Pauses of at least 5, 10, 20 ... ms: nine of them are over after 2.6 s.
	if opened := int(source.opened.Load()); opened > 10*len(mirroredKinds()) {
		t.Errorf("%d watches were opened for %d kinds", opened, len(mirroredKinds()))
	}
}

// rests waits until the watch has failed and Health reports it.
func (m *Mirror) rests(t *testing.T, resourceType string) {
	t.Helper()

	await.Until(t, "lost", func() bool {
		m.health.mu.Lock()
		defer m.health.mu.Unlock()

		return m.health.missing[resourceType] != nil && len(m.health.missing) == 1
	})
	time.Sleep(2 * time.Second)
}

func TestRestIsShortForTheHurried(t *testing.T) {
	m := &Mirror{options: Options{ResyncMinDelay: 10 * time.Millisecond}.withDefaults(), reopened: make(chan struct{})}
	waiting := m.nextReopening()
	m.ReopenWatches()

	started := time.Now()
	m.waitToReopen(await.Context(t), time.Hour, waiting)

	if took := time.Since(started); took < 4*time.Millisecond || took >= await.Limit {
		t.Errorf("took %s", took)
	}
}

// awayOmni refuses every watch while it is away, and counts the requests of each kind.
type awayOmni struct {
	*omnitest.FakeOmni

	mu       sync.Mutex
	back     bool
	requests map[resource.Type]int
}

func (a *awayOmni) WatchKind(ctx context.Context, kind resource.Kind, events chan<- state.Event, options ...state.WatchKindOption) error {
	a.mu.Lock()
	a.requests[kind.Type()]++
	back := a.back
	a.mu.Unlock()

	if !back {
		return status.Error(codes.Unavailable, "away")
	}

	return a.FakeOmni.WatchKind(ctx, kind, events, options...)
}

// TestOneWatchAsksWhileOmniIsAway checks that of the watches of an Omni that is away one is tried often, and that all are back
// soon after it is.
func TestOneWatchAsksWhileOmniIsAway(t *testing.T) {
	source := &awayOmni{FakeOmni: omnitest.NewFakeOmni(), requests: map[resource.Type]int{}}

	var passed atomic.Int64 // of the clock

	m := Start(t.Context(), source, Options{
		ResyncMinDelay: time.Millisecond, ResyncMaxDelay: 2 * time.Millisecond, AwayFirstDelay: 2 * time.Millisecond, AwayDelay: time.Hour,
		Now: func() time.Time { return time.Now().Add(time.Duration(passed.Load())) },
	})
	defer m.Stop()

	asked := func(resourceType resource.Type) int {
		source.mu.Lock()
		defer source.mu.Unlock()

		return source.requests[resourceType]
	}

	// It may be a restart: all of them ask.
	for _, kind := range mirroredKinds() {
		await.Until(t, "many requests for "+kind.resourceType, func() bool { return asked(kind.resourceType) > 100 })
	}

	passed.Store(int64(OutageGrace))
	await.Until(t, "pauses of an outage", func() bool {
		before := asked(omnires.MachineSetType)
		time.Sleep(50 * time.Millisecond)

		return asked(omnires.MachineSetType) == before
	})

	first, others := asked(omnires.ClusterType), 0
	for _, kind := range mirroredKinds()[1:] {
		others -= asked(kind.resourceType)
	}

	await.Until(t, "many requests of the first kind", func() bool { return asked(omnires.ClusterType) > first+500 })

	for _, kind := range mirroredKinds()[1:] {
		others += asked(kind.resourceType)
	}

	if others > len(mirroredKinds()) {
		t.Errorf("%d requests of the others", others)
	}

	source.mu.Lock()
	source.back = true
	source.mu.Unlock()

	await.Until(t, "synced", m.Synced)
}
