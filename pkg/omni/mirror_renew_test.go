package omni

import (
	"testing"
	"testing/synctest"
	"time"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// A watch that tells nothing any more is opened anew: when it does not show our own write in time, and at a certain age.
// Nobody takes that for a loss.
func TestSilentWatchesAreRenewed(t *testing.T) {
	for name, set := range map[string]func(*MirrorOptions){
		"a write is not shown": func(o *MirrorOptions) { o.WriteVisibleTimeout = 50 * time.Millisecond },
		"age":                  func(o *MirrorOptions) { o.WatchLife = 200 * time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, told := newFakeOmni(), &recorded{}
				options := telling(told)
				set(&options)

				m := startMirror(t, source, options)
				known := m.Health().Since
				source.silence()

				cluster := clusterNamed("demo")
				mustCreate(t, source, cluster)
				m.writes.expect("demo", *cluster.Metadata(), effectCreated)

				eventually(t, "shown", func() bool {
					_ = m.Ready("demo") // as the controller asks

					return m.store.get(omnires.ClusterType, "demo") != nil
				})

				if health := m.Health(); !health.Synced || health.Since != known {
					t.Errorf("health %+v, was well since %s", health, known)
				}

				eventually(t, "the difference is told", func() bool { return told.told("demo") })
			})
		})
	}
}
