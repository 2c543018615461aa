package mirror

import (
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/state"

	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// telling returns options of a mirror that records its calls in told, and reopens watches quickly.
func telling(told *omnitest.Recorded) Options {
	return Options{
		ClusterChanged: told.ClusterChanged, HealthChanged: told.HealthChanged,
		ResyncMinDelay: time.Millisecond, ResyncMaxDelay: 5 * time.Millisecond,
	}
}

// startMirror starts a mirror and waits until it is synced.
func startMirror(t *testing.T, source state.CoreState, options Options) *Mirror {
	t.Helper()

	m := Start(t.Context(), source, options)
	t.Cleanup(m.Stop)
	await.Until(t, "mirror synced", m.Synced)

	return m
}
