package omnikubeconfigexport

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/skew"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/looptest"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

const namespace = "team"

// errDiskFull is what a write fails with that a test lets fail.
var errDiskFull = errors.New("etcdserver: mvcc: database space exceeded")

// errAnswerLost is what a creation fails with of which a test loses the answer.
var errAnswerLost = errors.New("http2: client connection lost")

// fixture is the controller over a fake API and a simulated Omni.
type fixture struct {
	t           *testing.T
	omni        *omnisim.Server
	key         string
	client      client.WithWatch
	events      *looptest.Events
	pool        *session.Pool
	reconciler  *reconciler
	loop        *loop.Reconciler[*v1alpha1.OmniKubeconfigExport, *scope]
	now         time.Time
	differ      skew.Difference
	writes      []string
	failWrites  bool   // of Secrets
	loseAnswers bool   // of creations, which happen nevertheless
	looked      func() // before each deletion of a Secret; may be nil
	export      string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()

	sim, err := omnisim.Start(omnisim.Options{Phase: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(sim.Close)

	f := &fixture{t: t, omni: sim, events: looptest.NewEvents(), now: time.Now(), export: "automation"}
	if f.key, err = sim.CreateServiceAccount("operator", omnisim.RoleOperator, 30*24*time.Hour); err != nil {
		t.Fatal(err)
	}

	f.newClient()
	f.restart()
	f.createCluster("production", "uid-cluster")

	return f
}

const (
	// thisHub is the ID of the hub of the exports.
	thisHub = "hub-1"
	// fluxNamespace is one to which exports may write.
	fluxNamespace = "flux-system"
)

// restart is a new process: nothing is remembered.
func (f *fixture) restart() {
	f.t.Helper()

	f.pool = session.NewPool(f.t.Context(), session.PoolOptions{})
	f.t.Cleanup(f.pool.Close)
	f.reconciler = newReconciler(f.client, f.client, f.events, Options{
		Pool: f.pool, Objects: metrics.NewObjects(), Kubeconfigs: metrics.NewKubeconfigs(), HubID: thisHub, Namespaces: []string{fluxNamespace},
		Guard: dialguard.Guard{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, Now: func() time.Time { return f.now },
		Skew: func() skew.Difference { return f.differ },
	})
	f.loop = loop.New(f.reconciler.kind(), loop.Settings{Client: f.client, Events: f.events})
	f.connect()
}

// connect opens the session, as the controller of OmniConnection does.
func (f *fixture) connect() {
	f.t.Helper()

	key, err := session.ParseServiceAccountKey([]byte(f.key))
	if err != nil {
		f.t.Fatal(err)
	}

	lease, err := f.pool.Acquire(f.t.Context(), session.Identity{UID: "uid-main"},
		session.Config{Endpoint: f.omni.Endpoint(), Key: key, CABundle: f.omni.CAPEM()})
	if err != nil {
		f.t.Fatal(err)
	}

	lease.Release()
}

// createCluster makes a cluster in Omni that carries our mark, and tells its OmniCluster.
func (f *fixture) createCluster(name, owner string) {
	f.t.Helper()

	if err := omnisim.CreateForeignCluster(f.t.Context(), f.omni.State(), name, "1.35.1", "1.13.3"); err != nil {
		f.t.Fatal(err)
	}

	if err := omnisim.AnnotateCluster(f.t.Context(), f.omni.State(), name, v1alpha1.MarkOwnerUID, owner); err != nil {
		f.t.Fatal(err)
	}

	f.learnID(name)
}

// learnID writes the cluster's ID in Omni into the OmniCluster's status.
func (f *fixture) learnID(name string) {
	f.t.Helper()

	var found resource.Resource

	await.Until(f.t, "the ID of "+name, func() bool {
		var err error

		found, err = f.omni.State().Get(f.t.Context(), omni.NewClusterUUID(name).Metadata())

		return err == nil
	})

	cluster := &v1alpha1.OmniCluster{}
	f.must(f.client.Get(f.t.Context(), types.NamespacedName{Namespace: namespace, Name: "cluster-01"}, cluster))
	cluster.Status.OmniClusterID = found.(*omni.ClusterUUID).TypedSpec().Value.GetUuid() // asked for by type
	f.must(f.client.Status().Update(f.t.Context(), cluster))
}

func (f *fixture) must(err error) {
	f.t.Helper()

	if err != nil {
		f.t.Fatal(err)
	}
}

func newExport(name string) *v1alpha1.OmniKubeconfigExport {
	return &v1alpha1.OmniKubeconfigExport{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec: v1alpha1.OmniKubeconfigExportSpec{
			ClusterRef:      v1alpha1.LocalObjectReference{Name: "cluster-01"},
			TargetSecretRef: v1alpha1.TargetSecretReference{Name: "target", Key: "kubeconfig"},
			ServiceAccount:  v1alpha1.KubeconfigServiceAccount{User: "robot", Groups: []string{"deployers", "readers"}},
			TTL:             "24h", RenewBefore: "4h", DeletionPolicy: v1alpha1.DeletionDelete, Format: v1alpha1.FormatKubeconfig,
		},
	}
}

func (f *fixture) newClient() {
	f.t.Helper()

	f.client = looptest.NewAPI(
		&v1alpha1.OmniConnection{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "main", UID: "uid-main"},
			Spec:       v1alpha1.OmniConnectionSpec{Endpoint: f.omni.Endpoint(), CABundle: f.omni.CAPEM()},
		},
		&v1alpha1.OmniCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cluster-01", UID: "uid-cluster"},
			Spec:       v1alpha1.OmniClusterSpec{ConnectionRef: v1alpha1.LocalObjectReference{Name: "main"}, ClusterName: "production"},
		},
		newExport("automation"),
	).
		WithStatusSubresource(&v1alpha1.OmniKubeconfigExport{}, &v1alpha1.OmniCluster{}).
		WithInterceptorFuncs(f.interceptors()).Build()
}

// interceptors write down every write, and let those of Secrets fail if asked to.
func (f *fixture) interceptors() interceptor.Funcs {
	note := func(verb string, object client.Object) error {
		f.writes = append(f.writes, fmt.Sprintf("%s %T %s", verb, object, object.GetName()))

		// As an admission webhook that quotes what it refuses.
		if secret, ok := object.(*corev1.Secret); ok && f.failWrites {
			return fmt.Errorf("%w, refused %s", errDiskFull, secret.Data["value"])
		}

		return nil
	}

	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := note("create", o); err != nil {
				return err
			}

			if err := c.Create(ctx, o, opts...); err != nil || !f.loseAnswers {
				return err
			}

			return errAnswerLost
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if err := note("update", o); err != nil {
				return err
			}

			return c.Update(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := note("delete", o); err != nil {
				return err
			}

			if err := f.meant(ctx, c, o, opts); err != nil {
				return err
			}

			return c.Delete(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			f.writes = append(f.writes, "status "+o.GetName())

			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}
}

// meant is an error if the preconditions of a deletion do not hold; the fake API knows nothing of UIDs.
func (f *fixture) meant(ctx context.Context, c client.WithWatch, o client.Object, opts []client.DeleteOption) error {
	if f.looked != nil {
		f.looked()
	}

	must := (&client.DeleteOptions{}).ApplyOptions(opts).Preconditions
	live := index.SecretMetadata()

	if must == nil || c.Get(ctx, client.ObjectKeyFromObject(o), live) != nil {
		return nil
	}

	if must.UID != nil && *must.UID != live.UID || must.ResourceVersion != nil && *must.ResourceVersion != live.ResourceVersion {
		return apierrors.NewConflict(corev1.Resource("secrets"), o.GetName(), errDiskFull)
	}

	return nil
}

func (f *fixture) reconcile() (reconcile.Result, error) {
	f.t.Helper()

	result, err := f.loop.Reconcile(f.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: f.export}})

	return result, err
}

func (f *fixture) run() reconcile.Result {
	f.t.Helper()

	result, err := f.reconcile()
	f.must(err)

	return result
}

func (f *fixture) get() *v1alpha1.OmniKubeconfigExport {
	f.t.Helper()

	found := &v1alpha1.OmniKubeconfigExport{}
	f.must(f.client.Get(f.t.Context(), types.NamespacedName{Namespace: namespace, Name: f.export}, found))

	return found
}

func (f *fixture) edit(edit func(*v1alpha1.OmniKubeconfigExportSpec)) {
	f.t.Helper()

	object := f.get()
	edit(&object.Spec)
	object.Generation++
	f.must(f.client.Update(f.t.Context(), object))
}

// secret reads a Secret; nil if there is none.
func (f *fixture) secret(name string) *corev1.Secret {
	f.t.Helper()

	found := &corev1.Secret{}
	err := f.client.Get(f.t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, found)
	f.must(client.IgnoreNotFound(err))

	if err != nil {
		return nil
	}

	return found
}

func (f *fixture) editSecret(name string, edit func(*corev1.Secret)) {
	f.t.Helper()

	secret := f.secret(name)
	edit(secret)
	f.must(f.client.Update(f.t.Context(), secret))
}

// asked is how often Omni was asked for a kubeconfig.
func (f *fixture) asked() int { return f.omni.Requests()[omnisim.Request{Method: "Kubeconfig"}] }

// expect runs once and checks Ready, and that a second run writes nothing and asks for nothing.
func (f *fixture) expect(status metav1.ConditionStatus, reason string, texts ...string) {
	f.t.Helper()
	f.run()

	ready := apimeta.FindStatusCondition(f.get().Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status != status || ready.Reason != reason {
		f.t.Fatalf("Ready: %+v, want %s %s", ready, status, reason)
	}

	for _, text := range texts {
		if !strings.Contains(ready.Message, text) {
			f.t.Errorf("message %q does not say %q", ready.Message, text)
		}
	}

	writes := len(f.writes)
	f.run()

	if len(f.writes) != writes {
		f.t.Errorf("the second run wrote %v", f.writes[writes:])
	}
}

// ready expects that all is well.
func (f *fixture) ready() {
	f.t.Helper()
	f.expect(metav1.ConditionTrue, v1alpha1.ReasonWritten)
}
