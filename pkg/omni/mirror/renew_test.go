package mirror

import (
	"testing"
	"testing/synctest"
	"time"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// TestSilentWatchesAreRenewed checks that a silent watch is opened again when it does not show our own write in time,
// and at a certain age. Health does not count that as a loss.
func TestSilentWatchesAreRenewed(t *testing.T) {
	for name, set := range map[string]func(*Options){
		"a write is not shown": func(o *Options) { o.WriteVisibleTimeout = 50 * time.Millisecond },
		"age":                  func(o *Options) { o.WatchLife = 200 * time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, told := omnitest.NewFakeOmni(), &omnitest.Recorded{}
				options := telling(told)
				set(&options)

				m := startMirror(t, source, options)
				known := m.Health().Since
				source.Silence()

				cluster := omnitest.ClusterNamed("demo")
				omnitest.MustCreate(t, source, cluster)
				m.writes.expect("demo", *cluster.Metadata(), omni.EffectCreated)

				await.Until(t, "shown", func() bool {
					_ = m.Ready("demo") // as the controller does

					return m.store.get(omnires.ClusterType, "demo") != nil
				})

				if health := m.Health(); !health.Synced || health.Since != known {
					t.Errorf("health %+v, was well since %s", health, known)
				}

				await.Until(t, "the difference is told", func() bool { return told.Told("demo") })
			})
		})
	}
}
