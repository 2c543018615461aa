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
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

const (
	benchNamespace    = "team"
	benchCluster      = "demo"
	benchHub          = "hub-1"
	machineClass      = "pool"
	benchSlots        = 2
	settleTime        = 10 * time.Second
	eventuallyTimeout = 20 * time.Second
)

// bench is the controller over a fake API and a simulated Omni, driven by hand:
// nothing happens unless a test runs it.
type bench struct {
	t          *testing.T
	omni       *omnisim.Server
	key        string // of the service account
	machines   []string
	client     client.WithWatch
	events     *events.FakeRecorder
	seen       []string // events
	pool       *session.Pool
	reconciler *reconciler
	loop       *loop.Reconciler[*v1alpha1.OmniCluster, *scope]

	mu     sync.Mutex
	now    time.Time
	slow   time.Duration // that passes with every reading of the clock
	writes int           // to the API
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()

	return newBenchWith(t, omnisim.Options{Phase: 20 * time.Millisecond}, objects...)
}

// newBenchWith is newBench with an Omni of its own kind.
func newBenchWith(t *testing.T, options omnisim.Options, objects ...client.Object) *bench {
	t.Helper()

	sim, err := omnisim.Start(options)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(sim.Close)

	b := &bench{t: t, omni: sim, events: events.NewFakeRecorder(10000), now: time.Now()}
	b.addMachines()
	b.newClient(objects)

	b.pool = session.NewPool(t.Context(), session.PoolOptions{Runs: benchSlots})
	t.Cleanup(b.pool.Close)
	b.connect()
	b.restart()

	return b
}

func (b *bench) addMachines() {
	b.t.Helper()

	var err error
	if b.machines, err = b.omni.AddMachines(3); err != nil {
		b.t.Fatal(err)
	}

	if err = b.omni.AddMachineClass(machineClass, "pool = a"); err != nil {
		b.t.Fatal(err)
	}

	for range 4 {
		if _, err = b.omni.AddMachine(omnisim.Machine{Labels: map[string]string{"pool": "a"}}); err != nil {
			b.t.Fatal(err)
		}
	}
}

// connect opens the session, as the controller of OmniConnection does.
func (b *bench) connect() {
	b.t.Helper()

	var err error

	if b.key == "" {
		if b.key, err = b.omni.CreateServiceAccount("operator", omnisim.RoleOperator, time.Hour); err != nil {
			b.t.Fatal(err)
		}
	}

	key, err := session.ParseServiceAccountKey([]byte(b.key))
	if err != nil {
		b.t.Fatal(err)
	}

	lease, err := b.pool.Acquire(b.t.Context(), session.Identity{UID: "uid-connection"},
		session.Config{Endpoint: b.omni.Endpoint(), Key: key, CABundle: b.omni.CAPEM()})
	if err != nil {
		b.t.Fatal(err)
	}
	defer lease.Release()

	b.eventually("the local copy", func() string { return lease.Health().Message })
}

// takeSlots takes all slots of the connection, as runs of other clusters do.
func (b *bench) takeSlots() (release func()) {
	b.t.Helper()

	var taken []*session.Lease

	for i := range benchSlots {
		lease, open := b.pool.Get("uid-connection")
		if !open || !lease.Enter(fmt.Sprintf("other-%d", i)) {
			b.t.Fatal("no slot to take")
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
func (b *bench) restart() {
	b.reconciler = newReconciler(b.client, sources.Policy{}.Reader(b.client), b.events, Options{
		Pool: b.pool, Objects: metrics.NewObjects(), SettleTime: settleTime, ManagementCluster: "hub", HubID: benchHub, Now: b.clock,
	})
	b.loop = b.newLoop()
}

// newLoop makes the loop of the controller that there is.
func (b *bench) newLoop() *loop.Reconciler[*v1alpha1.OmniCluster, *scope] {
	return loop.New(b.reconciler.kind(), loop.Settings{Client: b.client, Events: b.events})
}

func (b *bench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.now = b.now.Add(b.slow)

	return b.now
}

// advance lets time pass for the controller.
func (b *bench) advance(by time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.now = b.now.Add(by)
}

// run reconciles once.
func (b *bench) run() reconcile.Result {
	b.t.Helper()

	result, err := b.loop.Reconcile(b.t.Context(), request(benchNamespace, benchCluster))
	if err != nil {
		b.t.Logf("reconcile: %v", err)
	}

	b.checkConditions()

	for {
		select {
		case event := <-b.events.Events:
			b.seen = append(b.seen, event)
		default:
			return result
		}
	}
}

// eventually waits until a check is empty.
func (b *bench) eventually(what string, check func() string) {
	b.t.Helper()

	deadline := time.Now().Add(eventuallyTimeout)

	for {
		problem := check()
		if problem == "" {
			return
		}

		if time.Now().After(deadline) {
			b.t.Fatalf("waiting for %s: %s", what, problem)
		}

		time.Sleep(5 * time.Millisecond)
	}
}

// until reconciles until a condition has a status and reason ("True", "Running");
// an empty reason is any.
func (b *bench) until(condition string, status metav1.ConditionStatus, reason string) *v1alpha1.OmniCluster {
	b.t.Helper()

	var cluster *v1alpha1.OmniCluster

	b.eventually(condition+" "+reason, func() string {
		b.run()

		cluster = b.get()

		c := apimeta.FindStatusCondition(cluster.Status.Conditions, condition)
		if c == nil || c.Status != status || reason != "" && c.Reason != reason {
			return fmt.Sprint(shown(cluster))
		}

		return ""
	})

	return cluster
}

// untilGone reconciles until the object does not exist any more.
func (b *bench) untilGone() {
	b.t.Helper()

	b.eventually("the end of the object", func() string {
		b.run()

		cluster := &v1alpha1.OmniCluster{}

		err := b.client.Get(b.t.Context(), types.NamespacedName{Namespace: benchNamespace, Name: benchCluster}, cluster)
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
func (b *bench) quiet() {
	b.t.Helper()

	// Omni stands still meanwhile; what it did last may still be on its way.
	b.omni.Pause()
	defer b.omni.Resume()

	b.eventually("runs that write nothing", func() string {
		writes, remote := b.writes, b.remoteWrites()

		for range 3 {
			b.run()
		}

		if b.writes != writes || b.remoteWrites() != remote {
			return fmt.Sprintf("more runs made %d writes to the API and %d to Omni: %v", b.writes-writes, b.remoteWrites()-remote, shown(b.get()))
		}

		return ""
	})
}

func (b *bench) remoteWrites() int { return len(b.omni.Writes()) }

func (b *bench) get() *v1alpha1.OmniCluster {
	b.t.Helper()

	cluster := &v1alpha1.OmniCluster{}
	if err := b.client.Get(b.t.Context(), types.NamespacedName{Namespace: benchNamespace, Name: benchCluster}, cluster); err != nil {
		b.t.Fatal(err)
	}

	return cluster
}

// change edits an object as a user does: the generation grows.
func change[O client.Object](b *bench, name string, empty O, edit func(O)) {
	b.t.Helper()

	if err := b.client.Get(b.t.Context(), types.NamespacedName{Namespace: benchNamespace, Name: name}, empty); err != nil {
		b.t.Fatal(err)
	}

	edit(empty)
	empty.SetGeneration(empty.GetGeneration() + 1)

	if err := b.client.Update(b.t.Context(), empty); err != nil {
		b.t.Fatal(err)
	}
}

// edit changes the OmniCluster.
func (b *bench) edit(edit func(*v1alpha1.OmniCluster)) {
	b.t.Helper()
	change(b, benchCluster, &v1alpha1.OmniCluster{}, edit)
}

func (b *bench) create(objects ...client.Object) {
	b.t.Helper()

	for _, object := range objects {
		if err := b.client.Create(b.t.Context(), object); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *bench) delete(object client.Object) {
	b.t.Helper()

	if err := b.client.Delete(b.t.Context(), object); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) view() omnisim.ClusterView {
	b.t.Helper()

	view, err := b.omni.View(benchCluster)
	if err != nil {
		b.t.Fatal(err)
	}

	return view
}

// hasEvent reports whether an event with these parts was sent.
func (b *bench) hasEvent(parts ...string) bool {
	for _, event := range b.seen {
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
func (b *bench) dump(into io.Writer) {
	fmt.Fprintln(into, b.seen)
	fmt.Fprintf(into, "%+v\n", b.get().Status)
}

// shown shows conditions as "Type=Status Reason: message".
func shown(cluster *v1alpha1.OmniCluster) []string {
	var lines []string
	for _, c := range cluster.Status.Conditions {
		lines = append(lines, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}

	return lines
}

// running is a bench with a cluster that runs: one control plane, two workers.
func running(t *testing.T) *bench {
	t.Helper()

	b := newBench(t, newCluster(), newWorkers("w", machineClass, 2))
	b.create(newControlPlane("cp", b.machines[0]))
	b.until("Ready", metav1.ConditionTrue, "Running")
	b.quiet()

	return b
}
