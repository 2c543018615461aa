// Package mirrortest starts mirrors for the tests of the packages that read from one.
package mirrortest

import (
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/state"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni/mirror"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// Telling returns options of a mirror that records its calls in told, and reopens watches quickly.
func Telling(told *omnitest.Recorded) mirror.Options {
	return mirror.Options{
		ClusterChanged: told.ClusterChanged, HealthChanged: told.HealthChanged,
		ResyncMinDelay: time.Millisecond, ResyncMaxDelay: 5 * time.Millisecond,
	}
}

// Start starts a mirror and waits until it is synced.
func Start(t *testing.T, source state.CoreState, options mirror.Options) *mirror.Mirror {
	t.Helper()

	m := mirror.Start(t.Context(), source, options)
	t.Cleanup(m.Stop)
	await.Until(t, "mirror synced", m.Synced)

	return m
}
