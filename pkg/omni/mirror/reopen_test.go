package mirror

import (
	"errors"
	"testing"
	"time"

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
