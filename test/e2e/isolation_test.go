package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// waiting is how many clusters want changes from an Omni that is sick, and waitingLong from one that still serves
// some of them meanwhile: more than it does while a busy machine serves those of the healthy one.
const waiting, waitingLong = 30, 60

// fewChanges is how many clusters of a healthy Omni are made one after another, twice: at once, and
// when the sick one has been found out.
const fewChanges = 4

// Whatever happens to one Omni, clusters of another are served; and when it is back, its own
// clusters go on by themselves.
func TestASickOmniHurtsOnlyItself(t *testing.T) {
	for name, tc := range map[string]struct {
		breakIt func(f *sickFleet) (heal func())
		noticed bool // the connection itself has to be found out
		many    int  // clusters that want changes
	}{
		"hangs at every call": {func(f *sickFleet) func() {
			return f.omni.Inject(omnisim.Fault{Hang: true})
		}, true, waiting},
		"hangs at writes": {func(f *sickFleet) func() {
			return f.omni.Inject(omnisim.Fault{Hang: true, Writes: true})
		}, false, waiting},
		"answers slowly": {func(f *sickFleet) func() {
			return f.omni.Inject(omnisim.Fault{Delay: 4 * time.Second})
		}, false, waitingLong},
		"answers half of a stream": {func(f *sickFleet) func() {
			f.relay.swallow(20_000)
			f.relay.cut()

			return f.relay.heal
		}, true, waiting},
		"packets vanish": {func(f *sickFleet) func() {
			f.relay.swallow(0)

			return f.relay.heal
		}, true, waiting},
		"accepts and never answers": {func(f *sickFleet) func() {
			f.relay.swallow(0)
			f.relay.cut()

			return f.relay.heal
		}, true, waiting},
		"goes away": {func(f *sickFleet) func() {
			f.omni.GoDown()

			return func() {
				if err := f.omni.ComeBack(); err != nil {
					f.t.Error(err)
				}
			}
		}, true, waiting},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // many Omnis may be sick at once

			well := newFleet(t)
			sick := newSickFleet(t)

			heal := sync.OnceFunc(tc.breakIt(sick))
			t.Cleanup(heal)

			sick.demand(tc.many)

			for i := range fewChanges {
				well.serve(i)
			}

			if tc.noticed {
				sick.waitCondition("oconn", "omni", v1alpha1.ConditionReady, metav1.ConditionFalse, "")
			}

			for i := range fewChanges {
				well.serve(fewChanges + i)
			}

			if served := sick.served(tc.many); served == tc.many {
				t.Errorf("the sick Omni served all %d clusters, so nothing was shown", served)
			}

			heal()

			started := time.Now()

			for i := range tc.many {
				sick.waitCondition("ocl", demanded(i), v1alpha1.ConditionSynced, metav1.ConditionTrue, "")
			}

			t.Logf("all %d clusters were applied within %s of the return", tc.many, time.Since(started).Round(time.Millisecond))
		})
	}
}

// sickFleet is a fleet behind a relay, in a namespace of its own.
type sickFleet struct {
	*fleet

	relay *relay
}

func newSickFleet(t *testing.T) *sickFleet {
	t.Helper()

	f := &sickFleet{fleet: newFleetIn(t, "-sick")}
	f.relay = newRelay(t, f.omni)

	f.apply(secretManifest("key", f.key, f.omni.Endpoint()+","+f.relay.endpoint()),
		connectionManifest("omni", f.relay.endpoint(), "key", string(f.omni.CAPEM())))
	f.waitShows("the connection to go through the relay", "oconn", "omni", "{.status.endpoint}", f.relay.endpoint())
	f.waitCondition("oconn", "omni", v1alpha1.ConditionReady, metav1.ConditionTrue, "")

	return f
}

func demanded(i int) string { return fmt.Sprintf("want-%02d", i) }

// demandOne asks for a cluster with one control-plane machine.
func (f *fleet) demandOne(i int) {
	f.t.Helper()

	ids, err := f.omni.AddMachines(1)
	if err != nil {
		f.t.Fatal(err)
	}

	f.apply(clusterManifest(demanded(i)), controlPlaneManifest(demanded(i), demanded(i), ids[0]))
}

// serve asks for a cluster and waits until Omni has it.
func (f *fleet) serve(i int) {
	f.t.Helper()

	started := time.Now()

	f.demandOne(i)
	f.waitCondition("ocl", demanded(i), v1alpha1.ConditionSynced, metav1.ConditionTrue, "")
	f.t.Logf("change %d on the healthy Omni was applied within %s", i, time.Since(started).Round(time.Millisecond))
}

// demand asks for many clusters at once.
func (f *fleet) demand(count int) {
	f.t.Helper()

	ids, err := f.omni.AddMachines(count)
	if err != nil {
		f.t.Fatal(err)
	}

	var manifests []string
	for i := range count {
		manifests = append(manifests, clusterManifest(demanded(i)), controlPlaneManifest(demanded(i), demanded(i), ids[i]))
	}

	f.apply(manifests...)
}

// served counts the demanded clusters that Omni has.
func (f *fleet) served(count int) int {
	f.t.Helper()

	served := 0

	for i := range count {
		if f.view(demanded(i)).Exists {
			served++
		}
	}

	return served
}
