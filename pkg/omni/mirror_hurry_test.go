package omni

import (
	"errors"
	"testing"
	"time"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// After an outage the first watch that succeeds ends the pauses of the others,
// and so does whoever knows that Omni is back.
func TestLostWatchesAreHurried(t *testing.T) {
	for name, hurry := range map[string]func(*Mirror){
		"by another watch": func(m *Mirror) {
			_ = newReception(m, omnires.MachineSetType, time.NewTimer(time.Hour)).complete()
		},
		"from outside": func(m *Mirror) { m.hurry() },
	} {
		t.Run(name, func(t *testing.T) {
			source := newFakeOmni()
			source.refuseWatch(omnires.ClusterType, errors.New("away"))

			m := StartMirror(t.Context(), source, MirrorOptions{ResyncMinDelay: 600 * time.Millisecond, ResyncMaxDelay: time.Hour})
			defer m.Stop()

			// By then the pauses are longer than the test waits for anything.
			m.rests(t, omnires.ClusterType)
			source.refuseWatch(omnires.ClusterType, nil)
			hurry(m)

			eventually(t, "synced", m.Synced)
		})
	}
}

// rests waits until the watch has failed and the mirror says so.
func (m *Mirror) rests(t *testing.T, resourceType string) {
	t.Helper()

	eventually(t, "lost", func() bool {
		m.health.mu.Lock()
		defer m.health.mu.Unlock()

		return m.health.missing[resourceType] != nil && len(m.health.missing) == 1
	})
	time.Sleep(2 * time.Second)
}

func TestRestIsShortForTheHurried(t *testing.T) {
	m := &Mirror{options: MirrorOptions{ResyncMinDelay: 10 * time.Millisecond}.withDefaults(), hurried: make(chan struct{})}
	waiting := m.nextHurry()
	m.hurry()

	started := time.Now()
	m.rest(t.Context(), time.Hour, waiting)

	if took := time.Since(started); took < 4*time.Millisecond || took > 10*time.Second {
		t.Errorf("took %s", took)
	}
}
