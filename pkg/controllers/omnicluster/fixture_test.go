package omnicluster

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/looptest"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

const (
	testNamespace = "team"
	testCluster   = "demo"
	testHub       = "hub-1"
	machineClass  = "pool"
	testSlots     = 2
	settleTime    = 10 * time.Second
)

// fixture is the controller over a fake API and a simulated Omni, driven by hand:
// nothing happens unless a test runs it.
type fixture struct {
	t          *testing.T
	omni       *omnisim.Server
	key        string // of the service account
	machines   []string
	client     client.WithWatch
	events     *looptest.Events
	pool       *session.Pool
	reconciler *reconciler
	loop       *loop.Reconciler[*v1alpha1.OmniCluster, *scope]

	mu     sync.Mutex
	now    time.Time
	slow   time.Duration // that passes with every reading of the clock
	writes int           // to the API
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()

	return newFixtureWith(t, omnisim.Options{Phase: 20 * time.Millisecond}, objects...)
}

// newFixtureWith is newFixture with an Omni of its own kind.
func newFixtureWith(t *testing.T, options omnisim.Options, objects ...client.Object) *fixture {
	t.Helper()

	sim, err := omnisim.Start(options)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(sim.Close)

	f := &fixture{t: t, omni: sim, events: looptest.NewEvents(), now: time.Now()}
	f.addMachines()
	f.newClient(objects)

	f.pool = session.NewPool(t.Context(), session.PoolOptions{Runs: testSlots})
	t.Cleanup(f.pool.Close)
	f.connect()
	f.restart()

	return f
}

func (f *fixture) addMachines() {
	f.t.Helper()

	var err error
	if f.machines, err = f.omni.AddMachines(3); err != nil {
		f.t.Fatal(err)
	}

	if err = f.omni.AddMachineClass(machineClass, "pool = a"); err != nil {
		f.t.Fatal(err)
	}

	for range 4 {
		if _, err = f.omni.AddMachine(omnisim.Machine{Labels: map[string]string{"pool": "a"}}); err != nil {
			f.t.Fatal(err)
		}
	}
}

// connect opens the session, as the controller of OmniConnection does.
func (f *fixture) connect() {
	f.t.Helper()

	var err error

	if f.key == "" {
		if f.key, err = f.omni.CreateServiceAccount("operator", omnisim.RoleOperator, time.Hour); err != nil {
			f.t.Fatal(err)
		}
	}

	key, err := session.ParseServiceAccountKey([]byte(f.key))
	if err != nil {
		f.t.Fatal(err)
	}

	lease, err := f.pool.Acquire(f.t.Context(), session.Identity{UID: "uid-connection"},
		session.Config{Endpoint: f.omni.Endpoint(), Key: key, CABundle: f.omni.CAPEM()})
	if err != nil {
		f.t.Fatal(err)
	}
	defer lease.Release()

	f.eventually("the local copy", func() string { return lease.Health().Message })
}

// takeSlots takes all slots of the connection, as runs of other clusters do.
func (f *fixture) takeSlots() (release func()) {
	f.t.Helper()

	var taken []*session.Lease

	for i := range testSlots {
		lease, open := f.pool.Get("uid-connection")
		if !open || !lease.Enter(fmt.Sprintf("other-%d", i)) {
			f.t.Fatal("no slot to take")
		}

		taken = append(taken, lease)
	}

	return func() {
		for _, lease := range taken {
			lease.Release()
		}
	}
}

// restart makes a controller that remembers nothing.
func (f *fixture) restart() {
	f.reconciler = newReconciler(f.client, sources.Policy{}.Reader(f.client), f.events, Options{
		Pool: f.pool, Objects: metrics.NewObjects(), SettleTime: settleTime, ManagementCluster: "hub", HubID: testHub, Now: f.clock,
	})
	f.loop = f.newLoop()
}

// newLoop makes the loop of the controller that there is.
func (f *fixture) newLoop() *loop.Reconciler[*v1alpha1.OmniCluster, *scope] {
	return loop.New(f.reconciler.kind(), loop.Settings{Client: f.client, Events: f.events})
}

func (f *fixture) clock() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.now = f.now.Add(f.slow)

	return f.now
}

// advance lets time pass for the controller.
func (f *fixture) advance(by time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.now = f.now.Add(by)
}

// run reconciles once.
func (f *fixture) run() reconcile.Result {
	f.t.Helper()

	result, err := f.loop.Reconcile(f.t.Context(), request(testNamespace, testCluster))
	if err != nil {
		f.t.Logf("reconcile: %v", err)
	}

	f.checkConditions()

	return result
}

// eventually waits until a check is empty.
func (f *fixture) eventually(what string, check func() string) {
	f.t.Helper()

	deadline := time.Now().Add(await.Limit)

	for {
		problem := check()
		if problem == "" {
			return
		}

		if time.Now().After(deadline) {
			f.t.Fatalf("waiting for %s: %s", what, problem)
		}

		time.Sleep(5 * time.Millisecond)
	}
}

// until reconciles until a condition has a status and reason ("True", "Running");
// an empty reason is any.
func (f *fixture) until(condition string, status metav1.ConditionStatus, reason string) *v1alpha1.OmniCluster {
	f.t.Helper()

	var cluster *v1alpha1.OmniCluster

	f.eventually(condition+" "+reason, func() string {
		f.run()

		cluster = f.get()

		c := apimeta.FindStatusCondition(cluster.Status.Conditions, condition)
		if c == nil || c.Status != status || reason != "" && c.Reason != reason {
			return fmt.Sprint(shown(cluster))
		}

		return ""
	})

	return cluster
}

// untilGone reconciles until the object does not exist any more.
func (f *fixture) untilGone() {
	f.t.Helper()

	f.eventually("the end of the object", func() string {
		f.run()

		cluster := &v1alpha1.OmniCluster{}

		err := f.client.Get(f.t.Context(), types.NamespacedName{Namespace: testNamespace, Name: testCluster}, cluster)
		if client.IgnoreNotFound(err) != nil {
			return err.Error()
		}

		if err == nil {
			return fmt.Sprint(shown(cluster))
		}

		return ""
	})
}

// quiet checks that more runs write nothing, neither to the API nor to Omni.
func (f *fixture) quiet() {
	f.t.Helper()

	// Omni stands still meanwhile; what it did last may still be on its way.
	f.omni.Pause()
	defer f.omni.Resume()

	f.eventually("runs that write nothing", func() string {
		writes, remote := f.writes, f.remoteWrites()

		for range 3 {
			f.run()
		}

		if f.writes != writes || f.remoteWrites() != remote {
			return fmt.Sprintf("more runs made %d writes to the API and %d to Omni: %v", f.writes-writes, f.remoteWrites()-remote, shown(f.get()))
		}

		return ""
	})
}

func (f *fixture) remoteWrites() int { return len(f.omni.Writes()) }

func (f *fixture) get() *v1alpha1.OmniCluster {
	f.t.Helper()

	cluster := &v1alpha1.OmniCluster{}
	if err := f.client.Get(f.t.Context(), types.NamespacedName{Namespace: testNamespace, Name: testCluster}, cluster); err != nil {
		f.t.Fatal(err)
	}

	return cluster
}

// change edits an object as a user does: the generation grows.
func change[O client.Object](f *fixture, name string, empty O, edit func(O)) {
	f.t.Helper()

	if err := f.client.Get(f.t.Context(), types.NamespacedName{Namespace: testNamespace, Name: name}, empty); err != nil {
		f.t.Fatal(err)
	}

	edit(empty)
	empty.SetGeneration(empty.GetGeneration() + 1)

	if err := f.client.Update(f.t.Context(), empty); err != nil {
		f.t.Fatal(err)
	}
}

// edit changes the OmniCluster.
func (f *fixture) edit(edit func(*v1alpha1.OmniCluster)) {
	f.t.Helper()
	change(f, testCluster, &v1alpha1.OmniCluster{}, edit)
}

func (f *fixture) create(objects ...client.Object) {
	f.t.Helper()

	for _, object := range objects {
		if err := f.client.Create(f.t.Context(), object); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *fixture) delete(object client.Object) {
	f.t.Helper()

	if err := f.client.Delete(f.t.Context(), object); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) view() omnisim.ClusterView {
	f.t.Helper()

	view, err := f.omni.View(testCluster)
	if err != nil {
		f.t.Fatal(err)
	}

	return view
}

// hasEvent reports whether an event with these parts was sent.
func (f *fixture) hasEvent(parts ...string) bool {
	for _, event := range f.events.All() {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(event, part)
		}

		if all {
			return true
		}
	}

	return false
}

// dump writes everything that a user can read of the object.
func (f *fixture) dump(into io.Writer) {
	fmt.Fprintln(into, f.events.All())
	fmt.Fprintf(into, "%+v\n", f.get().Status)
}

// shown shows conditions as "Type=Status Reason: message".
func shown(cluster *v1alpha1.OmniCluster) []string {
	var lines []string
	for _, c := range cluster.Status.Conditions {
		lines = append(lines, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}

	return lines
}

// running is a fixture with a cluster that runs: one control plane, two workers.
func running(t *testing.T) *fixture {
	t.Helper()

	f := newFixture(t, newCluster(), newWorkers("w", machineClass, 2))
	f.create(newControlPlane("cp", f.machines[0]))
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()

	return f
}
