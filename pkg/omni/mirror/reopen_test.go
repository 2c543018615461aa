package mirror

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni/omnitest"
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

			omnitest.Eventually(t, "synced", m.Synced)
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

	omnitest.Eventually(t, "lost", func() bool {
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
	m.waitToReopen(t.Context(), time.Hour, waiting)

	if took := time.Since(started); took < 4*time.Millisecond || took > 10*time.Second {
		t.Errorf("took %s", took)
	}
}
