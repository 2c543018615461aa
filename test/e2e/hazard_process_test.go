package e2e

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/env"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// killRounds is how often the controller is killed in each part of a cluster's life.
const killRounds = 2

// TestHazardAlone runs the rows that stop or kill our programs, one after another.
func TestHazardAlone(t *testing.T) {
	slow(t)
	for _, row := range processHazards() {
		t.Run(row.name, func(t *testing.T) { inFreshFleets(t, newestOmni, row.run) })
	}
}

// processHazards are accidents with our own programs and their data.
func processHazards() []hazard {
	return []hazard{
		{
			name:      "controller killed between any two writes",
			bare:      true,
			when:      killBetweenWrites,
			destroyed: []string{"ConfigPatch 200-cluster-c-first", "MachineSet c-old"},
			machines:  sizes(1, map[string]int{"new": 1}),
			then: func(f *fleet) {
				f.killAtEveryWrite(func() { f.run("delete", "ocl", "c", "--wait=false") }, func() bool { return !f.view("c").Exists })
				f.deleted("c")
			},
			finally: []string{"Cluster c", "ConfigPatch 200-cluster-c-first", "MachineSet c-old"},
		},
		{
			name:     "controller killed at random moments",
			bare:     true,
			when:     killAtRandomMoments,
			says:     []seen{ready()},
			machines: sizes(1, nil),
			then: func(f *fleet) {
				f.run("delete", "ocl", "c", "--wait=false")
				f.killRandomly()
				f.deleted("c")
			},
			finally: []string{"Cluster c"},
		},
		{
			// Another UID, so the cluster is not its own.
			name: "finalizer removed and object made again",
			when: func(f *fleet) {
				stack.Controller.Kill()
				f.run("delete", "ocl", "c", "--wait=false")
				f.merge(`{"metadata":{"finalizers":null}}`)
				f.apply(clusterManifest("c"))
				f.restartController()
			},
			says: []seen{stalled(v1alpha1.ReasonNotOwned, "/c", "spec.adopt")},
			then: func(f *fleet) { f.run("delete", "ocl", "c", "--timeout=60s") },
		},
		{
			// What carries the mark still goes on DELETE.
			name: "status wiped then deleted",
			when: func(f *fleet) {
				stack.Controller.Kill()
				f.run("patch", "ocl", "c", "--subresource=status", "--type=merge", "-p", `{"status":null}`)
				f.run("delete", "ocl", "c", "--wait=false")
				f.restartController()
				f.deleted("c")
			},
			destroyed: []string{"Cluster c"},
			machines:  map[string]int{},
		},
		{
			// What was asked for before is not known any more.
			name: "status wiped then a set pruned",
			when: func(f *fleet) {
				stack.Controller.Kill()
				f.run("patch", "ocl", "c", "--subresource=status", "--type=merge", "-p", `{"status":null}`)
				f.run("delete", "ow", "c-w")
				f.restartController()
			},
			says: []seen{stalled(v1alpha1.ReasonAwaitingApproval, `MachineSet "c-c-w"`, "not made by this object", "approvedPlan")},
		},
		{
			// The set was made after the snapshot; nobody asked for its end.
			name:     "our etcd restored with the controller running",
			when:     func(f *fleet) { f.restoreEtcd(true) },
			says:     []seen{stalled(v1alpha1.ReasonAwaitingApproval, `MachineSet "c-later"`, "not made by this object", "approvedPlan")},
			machines: sizes(2, map[string]int{"later": 1}),
			then: func(f *fleet) {
				f.apply(workersManifest("later", "c", classOf(pool, 1)))
				f.ready("c")
			},
		},
		{
			name:     "our etcd restored with the controller stopped",
			when:     func(f *fleet) { f.restoreEtcd(false) },
			says:     []seen{stalled(v1alpha1.ReasonAwaitingApproval, `MachineSet "c-later"`, "not made by this object", "approvedPlan")},
			machines: sizes(2, map[string]int{"later": 1}),
			then: func(f *fleet) {
				f.apply(workersManifest("later", "c", classOf(pool, 1)))
				f.ready("c")
			},
		},
		{
			// The snapshot has a removal. What was to go then is gone; what Omni has now was made since.
			name: "our etcd restored with a removal in it that was done since",
			when: func(f *fleet) {
				f.restoreEtcdOf(true, func() { f.run("delete", "ow", "c-w") }, func() {
					f.wait("the set to go", func() error { return f.absent("c-c-w") })
					f.apply(workersManifest("c-w", "c", classOf(pool, 2)))
					f.waitMachines("c", "c-w", 2)
				})
			},
			destroyed: []string{"MachineSet c-c-w"},
			says:      []seen{stalled(v1alpha1.ReasonAwaitingApproval, `MachineSet "c-c-w"`, "made in Omni at", "approvedPlan")},
			then: func(f *fleet) {
				f.apply(workersManifest("c-w", "c", classOf(pool, 2)))
				f.ready("c")
			},
		},
		{
			// The mark is completed by one write for each cluster, and nothing else is written.
			name: "marks from before they named the hub",
			when: upgraded,
			says: []seen{ready()},
		},
		{
			name: "two objects on two hubs",
			when: func(f *fleet) {
				other := f.onAnotherHub()
				other.apply(clusterManifest("c"), controlPlaneManifest("c-cp", "c", f.machines[0]))
				other.says("c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonNotOwned, f.name+"/c")
				other.run("delete", "ocl", "c", "--timeout=60s")

				// The files allow to adopt, as they did once for the first hub: that takes nothing from it.
				quiet := f.lastWrite()
				other.apply(clusterManifest("c", "  adopt: true"))
				other.belongsTo(f)
				other.reconcilesAgain(quiet)
				other.run("delete", "ocl", "c", "--timeout=60s")
				f.unchanged("c")
				f.ready("c")

				// Taken over on the user's word, it is not taken back, and neither destroys.
				other.apply(clusterManifest("c", "  adopt: true"))
				other.belongsTo(f)
				other.run("annotate", "omniconnection", "omni", v1alpha1.AnnotationPreviousHub+"="+f.hubID())
				other.says("c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonAwaitingApproval, `MachineSet "c-c-w"`)
			},
			says: []seen{stalled(v1alpha1.ReasonOwnershipLost, `cluster "c"`)},
			then: func(f *fleet) { f.run("delete", "ocl", "c", "--timeout=60s") },
		},
	}
}

func (f *fleet) restartController() {
	f.t.Helper()

	if err := stack.Controller.Restart(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

// killBetweenWrites makes and changes a cluster with a controller that gets one write further each
// time before it is killed.
func killBetweenWrites(f *fleet) {
	documents := func(patch, set string, workers int) {
		f.apply(clusterManifest("c", "  patches: [{name: "+patch+", inline: {machine: {sysctls: {a: b}}}}]"),
			controlPlaneManifest("c-cp", "c", f.machines[0]), workersManifest("c-w", "c", classOf(pool, workers)),
			workersManifest(set, "c", "machines: ["+f.machines[map[string]int{"old": 1, "new": 2}[set]]+"]"))
	}

	f.killAtEveryWrite(func() { documents("first", "old", 2) }, f.synced)
	f.ready("c")
	f.wantDestroyed()
	f.killAtEveryWrite(func() {
		f.run("delete", "ow", "old")
		documents("second", "new", 1)
	}, func() bool { return f.synced() && f.absent("c-old") == nil })
	f.ready("c")
}

// synced reports whether Omni has what the documents of cluster c say now.
func (f *fleet) synced() bool {
	cluster, err := tryGet[v1alpha1.OmniCluster](f.space, "ocl", "c")
	if err != nil || cluster.Status.ObservedGeneration != cluster.Generation {
		return false
	}

	for _, c := range cluster.Status.Conditions {
		if c.Type == v1alpha1.ConditionSynced {
			return c.Status == metav1.ConditionTrue
		}
	}

	return false
}

// killAtEveryWrite makes a change and kills the controller when it is about to write to Omni for
// the first time. Then it lets every process of the controller write once, and kills it when it is
// about to write again, until the work is done.
func (f *fleet) killAtEveryWrite(change func(), done func() bool) {
	f.t.Helper()

	for kills, deadline := 0, time.Now().Add(3*eventually); ; kills++ {
		hit := make(chan struct{})
		remove := f.omni.Inject(omnisim.Fault{Writes: true, After: min(kills, 1), Times: 1, Hang: true, Code: codes.Unavailable, OnHit: func() { close(hit) }})

		if kills == 0 {
			change()
		}

		if !f.hitBefore(hit, done, deadline) {
			remove()
			f.t.Logf("killed at %d writes", kills)

			return
		}

		stack.Controller.Kill()
		remove()
		f.restartController()
	}
}

// hitBefore reports whether a fault hits before the work is done.
func (f *fleet) hitBefore(hit <-chan struct{}, done func() bool, deadline time.Time) bool {
	f.t.Helper()

	for {
		select {
		case <-hit:
			return true
		case <-time.After(200 * time.Millisecond):
		}

		if done() {
			return false
		}

		if time.Now().After(deadline) {
			f.t.Fatal("the work is never done")
		}
	}
}

func killAtRandomMoments(f *fleet) {
	f.apply(clusterManifest("c"), controlPlaneManifest("c-cp", "c", f.machines[0]), workersManifest("c-w", "c", classOf(pool, 2)))
	f.killRandomly()
	f.ready("c")
	f.unchanged("c")
	f.run("scale", "omniworkers/c-w", "--replicas=1")
	f.killRandomly()
	f.waitMachines("c", "c-w", 1)
}

func (f *fleet) killRandomly() {
	f.t.Helper()

	for range killRounds {
		time.Sleep(rand.N(400 * time.Millisecond)) // the moment is the point
		stack.Controller.Kill()
		f.restartController()
	}
}

// restoreEtcd takes a snapshot of our etcd, adds a worker set named later to cluster c, and puts
// the snapshot back, with the controller running all the time or stopped meanwhile.
func (f *fleet) restoreEtcd(running bool) {
	f.t.Helper()
	f.restoreEtcdOf(running, func() {}, func() {
		f.apply(workersManifest("later", "c", classOf(pool, 1)))
		f.waitMachines("c", "later", 1)
	})

	if out, err := f.try("get", "ow", "later"); err == nil {
		f.t.Fatalf("the snapshot has a later object: %s", out)
	}
}

// restoreEtcdOf restores what there was after the first of two steps, when both are done.
func (f *fleet) restoreEtcdOf(running bool, first, later func()) {
	f.t.Helper()

	data, copied := stack.OmniAPIServer.EtcdDataDir, filepath.Join(f.t.TempDir(), "etcd")

	offline := func(do func() error) {
		f.t.Helper()

		if err := errors.Join(stack.OmniAPIServer.Stop(), do(), stack.OmniAPIServer.Restart(f.t.Context())); err != nil {
			f.t.Fatal(err)
		}
	}

	first()
	offline(func() error { return os.CopyFS(copied, os.DirFS(data)) })
	later()
	f.ready("c")

	if !running {
		stack.Controller.Kill()
	}

	offline(func() error { return errors.Join(os.RemoveAll(data), os.CopyFS(data, os.DirFS(copied))) })

	if !running {
		f.restartController()
	}
}

// onAnotherHub is a namespace of the same name on a management cluster of its own, which uses the
// same Omni.
func (f *fleet) onAnotherHub() *fleet {
	f.t.Helper()

	hub, err := env.StartStack(f.t.Context(), env.StackOptions{Controller: env.ControllerOptions{DestroySettleTime: settleTime}})
	if err != nil {
		f.t.Fatal(err)
	}

	f.t.Cleanup(func() {
		if err := hub.Stop(); err != nil {
			f.t.Error(err)
		}
	})

	other := &fleet{space: &space{t: f.t, name: f.name, hub: hub}, omni: f.omni, key: f.key, machines: f.machines}
	other.explainsFailure()
	other.run("create", "namespace", other.name)
	other.apply(secretManifest("key", f.key, f.omni.Endpoint()), connectionManifest("omni", f.omni.Endpoint(), "key", string(f.omni.CAPEM())))

	return other
}
