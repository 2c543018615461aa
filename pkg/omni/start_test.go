package omni

import (
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/state"
)

// telling are options of a mirror that tells and is quick to come back.
func telling(told *recorded) MirrorOptions {
	return MirrorOptions{
		ClusterChanged: told.ClusterChanged, HealthChanged: told.HealthChanged,
		ResyncMinDelay: time.Millisecond, ResyncMaxDelay: 5 * time.Millisecond,
	}
}

// startMirror starts a mirror and waits until it is synced.
func startMirror(t *testing.T, source state.CoreState, options MirrorOptions) *Mirror {
	t.Helper()

	m := StartMirror(t.Context(), source, options)
	t.Cleanup(m.Stop)
	eventually(t, "mirror synced", m.Synced)

	return m
}
