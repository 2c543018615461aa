package e2e

import (
	"time"

	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// omniHazards are failures of Omni, of the way to it and of the key for it.
func omniHazards() []hazard {
	return []hazard{
		{
			name: "Omni answers with errors",
			bare: true,
			when: func(f *fleet) {
				f.inject(omnisim.Fault{Method: "Create", Type: omni.ClusterType, Times: 1, Code: codes.Internal})
				f.inject(omnisim.Fault{Method: "Create", Type: omni.MachineSetType, Times: 2, Code: codes.Unavailable})
				f.inject(omnisim.Fault{Method: "Create", Type: omni.MachineSetNodeType, Times: 1, Code: codes.ResourceExhausted})
				f.cluster("c")
				f.inject(omnisim.Fault{Method: "Update", Times: 2, Code: codes.Unavailable})
				f.run("scale", "omniworkers/c-w", "--replicas=1")
				f.waitMachines("c", "c-w", 1)
			},
			says:     []seen{ready()},
			machines: sizes(1, nil),
			then: func(f *fleet) {
				for _, method := range []string{"Teardown", "Destroy", "Update", "TeardownAndDestroy"} {
					f.inject(omnisim.Fault{Method: method, Times: 1, Code: codes.Unavailable})
				}

				f.run("delete", "ocl", "c", "--timeout=60s")
				f.waitRemoteGone("c")
			},
			finally: []string{"Cluster c"},
		},
		{
			name: "Omni resets streams all the time",
			when: func(f *fleet) {
				f.run("scale", "omniworkers/c-w", "--replicas=1")

				for range 10 {
					f.omni.ResetStreams()
					time.Sleep(settleTime / 5)
				}

				f.waitMachines("c", "c-w", 1)
			},
			says:     []seen{ready()},
			machines: sizes(1, nil),
		},
		{
			// Twice as long as the settle time of a destroying change, and the change comes meanwhile.
			name: "Omni goes away for long",
			when: func(f *fleet) {
				f.omni.GoDown()
				f.run("delete", "ow", "c-w")
				f.waitCondition("oconn", "omni", v1alpha1.ConditionReady, metav1.ConditionFalse, "")
				f.says("c", v1alpha1.ConditionReady, metav1.ConditionFalse, "", `OmniConnection "omni"`, "cannot be reached")
				time.Sleep(away)
				f.follow("c")

				// The wish is taken back before a settle time has passed in which there was a plan.
				f.inTime(func() {
					if err := f.omni.ComeBack(); err != nil {
						f.t.Fatal(err)
					}

					f.hesitate(`MachineSet "c-c-w"`)
					f.put(workersManifest("c-w", "c", classOf(pool, 2)))
				})
			},
			says: []seen{ready()},
		},
		{
			name: "Omni hangs",
			when: func(f *fleet) {
				release := f.inject(omnisim.Fault{Hang: true})
				f.omni.ResetStreams()
				f.run("delete", "ow", "c-w")
				f.run("delete", "ocp", "c-cp")
				time.Sleep(2 * settleTime)
				f.apply(controlPlaneManifest("c-cp", "c", f.machines[0]), workersManifest("c-w", "c", classOf(pool, 2)))
				release()
			},
			says: []seen{ready()},
		},
		{
			// The worker set's creation has no answer; another Omni's clusters are not held up.
			name: "request hangs inside an apply",
			bare: true,
			when: func(f *fleet) {
				hit := make(chan struct{})
				release := f.inject(omnisim.Fault{Method: "Create", Type: omni.MachineSetNodeType, Times: 1, Hang: true, OnHit: func() { close(hit) }})
				f.apply(clusterManifest("c"), controlPlaneManifest("c-cp", "c", f.machines[0]), workersManifest("c-w", "c", classOf(pool, 2)))
				f.within(hit)

				other := newFleetIn(f.t, "-2")
				other.cluster("quick")
				release()
			},
			says:     []seen{ready()},
			machines: sizes(2, nil),
		},
		{
			name: "key revoked in the middle of a sync",
			bare: true,
			when: func(f *fleet) {
				hit := make(chan struct{})
				release := f.inject(omnisim.Fault{Method: "Create", Type: omni.MachineSetNodeType, Times: 1, Hang: true, OnHit: func() { close(hit) }})

				// The first sync is of all documents: they are known before the cluster is.
				f.apply(controlPlaneManifest("c-cp", "c", f.machines[0]), workersManifest("c-w", "c", classOf(pool, 2)))
				f.known("ocp/c-cp", "ow/c-w")
				f.apply(clusterManifest("c"))
				f.within(hit)

				if err := f.omni.RevokeKey(f.key); err != nil {
					f.t.Fatal(err)
				}

				release()
				f.omni.ResetStreams()
				f.waitCondition("oconn", "omni", v1alpha1.ConditionReachable, metav1.ConditionFalse, v1alpha1.ReasonUnauthenticated)
			},
			says:     []seen{notReady("", `OmniConnection "omni"`)},
			machines: map[string]int{"c-control-planes": 0, "c-c-w": 2},
			then: func(f *fleet) {
				f.newKey()
				f.ready("c")
				f.unchanged("c")
			},
		},
		{
			name: "key revoked then deleted",
			when: func(f *fleet) {
				if err := f.omni.RevokeKey(f.key); err != nil {
					f.t.Fatal(err)
				}

				f.omni.ResetStreams()
				f.waitCondition("oconn", "omni", v1alpha1.ConditionReady, metav1.ConditionFalse, "")
				f.run("delete", "ocl", "c", "--wait=false")
			},
			says: []seen{notReady("", `"c"`), deletionBlocked("", `"c"`, "Restore the connection", "orphan")},
			then: func(f *fleet) {
				f.newKey()
				f.deleted("c")
			},
			finally: []string{"Cluster c"},
		},
		{
			name: "key revoked while a destroy settles",
			when: func(f *fleet) {
				if !f.inTime(func() {
					f.remove("ow", "c-w")
					f.hesitate()

					if err := f.omni.RevokeKey(f.key); err != nil {
						f.t.Fatal(err)
					}
				}) {
					return
				}

				f.omni.ResetStreams()
				f.waitCondition("oconn", "omni", v1alpha1.ConditionReady, metav1.ConditionFalse, "")
				f.apply(workersManifest("c-w", "c", classOf(pool, 2)))
				f.newKey()
			},
			says: []seen{ready()},
		},
	}
}

// away is how long an Omni that goes away stays away.
const away = 20 * time.Second

// inject lets requests fail until the test ends, or the returned function is called.
func (f *fleet) inject(fault omnisim.Fault) (remove func()) {
	f.t.Helper()

	remove = f.omni.Inject(fault)
	f.t.Cleanup(remove)

	return remove
}

// within waits for something that a fault of the simulator tells.
func (f *fleet) within(hit <-chan struct{}) {
	f.t.Helper()

	select {
	case <-hit:
	case <-time.After(eventually):
		f.t.Fatal("the request never came")
	}
}

// newKey gives the connection a new key.
func (f *fleet) newKey() {
	f.t.Helper()

	key, err := f.omni.AddKey("operator", time.Hour)
	if err != nil {
		f.t.Fatal(err)
	}

	f.apply(secretManifest("key", key, f.omni.Endpoint()))
}
