package omni

import (
	"bytes"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
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
				options := told.options()
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

// A fleet's first contents are larger than what the library takes in one message.
func TestLargeContents(t *testing.T) {
	const size, count = 1 << 20, 20 // each goes over the wire twice, in two encodings

	server := startOmni(t, omnisim.Options{})

	for i := range count {
		patch := labelled(omnires.NewConfigPatch("large-"+strconv.Itoa(i)), "demo")
		patch.TypedSpec().Value.Data = string(bytes.Repeat([]byte("x"), size)) //nolint:staticcheck // as older clients write it

		if err := server.Unchecked().Create(t.Context(), patch); err != nil {
			t.Fatal(err)
		}
	}

	_, lease := connect(t, server, &recorded{})

	// All of it came in one message.
	found, err := lease.mirror.State().List(t.Context(), resource.NewMetadata("default", omnires.ConfigPatchType, "", resource.VersionUndefined))
	if err != nil || len(found.Items) != count {
		t.Errorf("%d patches, %v", len(found.Items), err)
	}
}
