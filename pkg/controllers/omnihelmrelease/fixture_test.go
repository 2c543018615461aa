package omnihelmrelease

import (
	"cmp"
	"context"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render/worker"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
	"omni.texashpc.com/omni-cluster-operator/test/looptest"
)

// renderers read what repositories send, for all tests.
var renderers = render.New(render.Options{})

// TestMain makes the test program a worker when a pool starts it as one.
func TestMain(m *testing.M) {
	if worker.Asked(os.Args) {
		os.Exit(worker.Run(os.Args))
	}

	code := m.Run()

	renderers.Close()
	os.Exit(code)
}

// openAccess lets everybody in.
type openAccess struct {
	id          string // of another cluster than cluster-id; empty for that
	cleanup     clusteraccess.Cleanup
	destroying  bool
	cluster     *clusteraccess.Cluster // for the real engine; else nil
	remembering *clusteraccess.Access  // remembers failed clean-ups; else nil
	hubs        hubs.Hubs
	kubeconfig  string       // a digest of it
	suspended   bool         // whether the OmniCluster is
	outcome     loop.Outcome // of who is not let in; empty: everybody is
}

// thisHub is the ID of the hub of the releases.
const thisHub = "hub-1"

func (d *openAccess) Open(context.Context, clusteraccess.Requester) (*clusteraccess.Opened, loop.Outcome, error) {
	if d.outcome != (loop.Outcome{}) {
		return nil, d.outcome, nil
	}

	return &clusteraccess.Opened{
		Cluster: d.cluster, ClusterID: cmp.Or(d.id, "cluster-id"), Kubeconfig: d.kubeconfig, Hubs: d.hubs, Names: `OmniConnection "omni"`,
		Suspended: d.suspended,
	}, loop.Continue(v1alpha1.ReasonConnected, ""), nil
}

func (d *openAccess) PlanCleanup(context.Context, clusteraccess.Requester, time.Time) (clusteraccess.Cleanup, loop.Outcome, error) {
	return d.cleanup, loop.Continue(v1alpha1.ReasonDeleting, ""), nil
}

func (d *openAccess) Destroying(context.Context, clusteraccess.Requester) (bool, error) {
	return d.destroying, nil
}

// GiveUp has been in trouble for as long as anybody may be, unless somebody remembers.
func (d *openAccess) GiveUp(object client.Object, problem string, tried, now time.Time) (clusteraccess.Action, string) {
	if d.remembering != nil {
		return d.remembering.GiveUp(object, problem, tried, now)
	}

	return clusteraccess.CleanupPolicy{Problem: problem, Since: object.GetDeletionTimestamp().Time, Now: now}.Decide()
}

// fixture runs the real loop and the real chart sources against a cluster that is only in memory.
type fixture struct {
	t       *testing.T
	client  client.Client
	r       *reconciler
	loop    *loop.Reconciler[*v1alpha1.OmniHelmRelease, *scope]
	cluster *cluster
	access  *openAccess
	owners  *hubs.Owners // of the real access
	charts  *chartserver.Repository
	events  *looptest.Events
	mu      sync.Mutex
	clock   time.Time
}

func newFixture(t *testing.T, change ...func(*v1alpha1.OmniHelmRelease)) *fixture {
	t.Helper()

	f := &fixture{t: t, charts: chartserver.StartRepository(), clock: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), events: looptest.NewEvents()}
	t.Cleanup(f.charts.Close)
	f.charts.Add(chartserver.ConfigMapChart("demo", "1.0.0"))

	f.client = looptest.NewAPI().WithStatusSubresource(&v1alpha1.OmniHelmRelease{}).Build()
	f.cluster = &cluster{now: f.now}
	here := hubs.Hubs{Own: thisHub}
	f.access = &openAccess{cleanup: clusteraccess.Cleanup{Action: clusteraccess.ActionCleanUp, Opened: &clusteraccess.Opened{ClusterID: "cluster-id", Hubs: here}}, hubs: here}
	f.restart()
	f.add("app", change...)

	return f
}

// restart is a new process.
func (f *fixture) restart() {
	f.r = newReconciler(f.client, f.client, f.events, logr.Discard(), Options{
		Objects: metrics.NewObjects(), Actions: metrics.NewHelmActions(), HubID: thisHub, Concurrency: 1, Now: f.now, Renderers: renderers,
		Charts: charts.New(charts.Options{Renderers: renderers, Guard: dialguard.Guard{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, Now: f.now}),
	})
	// On a busy machine an answer may take long, and a test that is not about that waits for it.
	f.r.found.Options.AnswerTimeout, f.r.drift.Options.AnswerTimeout = time.Minute, time.Minute
	f.r.access = f.access
	f.r.engine = func(*clusteraccess.Opened, string, string, string) engine { return f.cluster }
	f.loop = loop.New(f.r.kind(), loop.Settings{Client: f.client, Events: f.events})
}

func (f *fixture) now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()

	return f.clock
}

func (f *fixture) pass(duration time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.clock = f.clock.Add(duration)
}

func (f *fixture) add(name string, change ...func(*v1alpha1.OmniHelmRelease)) {
	f.t.Helper()

	release := newTestRelease(v1alpha1.HelmChart{Repository: f.charts.URL(), Chart: "demo", Version: "1.0.0"})
	release.Name, release.UID, release.Generation = name, types.UID("uid-of-"+name), 1
	v1alpha1.SetDefaults_OmniHelmReleaseSpec(&release.Spec)

	for _, c := range change {
		c(release)
	}

	if err := f.client.Create(f.t.Context(), release); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) get() *v1alpha1.OmniHelmRelease {
	f.t.Helper()

	release := &v1alpha1.OmniHelmRelease{}
	if err := f.client.Get(f.t.Context(), client.ObjectKey{Namespace: "ns", Name: "app"}, release); err != nil {
		f.t.Fatal(err)
	}

	return release
}

func (f *fixture) edit(change func(*v1alpha1.OmniHelmRelease)) {
	f.t.Helper()

	// A run may write the status at the same time.
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		release := f.get()
		change(release)
		release.Generation++

		return f.client.Update(f.t.Context(), release)
	}); err != nil {
		f.t.Fatal(err)
	}
}

// run reconciles once, and waits until the action that it began has ended.
func (f *fixture) run() reconcile.Result {
	f.t.Helper()

	result := f.look()
	for f.cluster.hold == nil && f.r.runner.job("uid-of-app").running() {
		time.Sleep(time.Millisecond)
	}

	return result
}

func (f *fixture) look() reconcile.Result {
	f.t.Helper()

	result, err := f.loop.Reconcile(f.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "app"}})
	if err != nil {
		f.t.Fatal(err)
	}

	return result
}

// settle reconciles until nothing is to be done at once.
func (f *fixture) settle() {
	f.t.Helper()

	for range 10 {
		before := len(f.cluster.actions())

		if result := f.run(); result.RequeueAfter > time.Second && before == len(f.cluster.actions()) {
			return
		}
	}
}

func (f *fixture) want(conditionType string, status metav1.ConditionStatus, reason string) string {
	f.t.Helper()

	found := apimeta.FindStatusCondition(f.get().Status.Conditions, conditionType)
	if found == nil || found.Status != status || found.Reason != reason {
		f.t.Fatalf("%s is %+v, want %s %s", conditionType, found, status, reason)
	}

	return found.Message
}

func (f *fixture) wantActions(want ...helm.Action) {
	f.t.Helper()

	if got := f.cluster.actions(); !slices.Equal(got, want) {
		f.t.Fatalf("actions %v, want %v", got, want)
	}
}
