package omniconnection

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// bench is the controller over a fake API and a simulated Omni.
type bench struct {
	t       *testing.T
	omni    *omnisim.Server
	key     string
	client  client.WithWatch
	events  *events.FakeRecorder
	seen    []string
	pool    *session.Pool
	objects *metrics.Objects
	calls   *metrics.Calls
	loop    *loop.Reconciler[*v1alpha1.OmniConnection, *scope]
	now     time.Time
	writes  int

	asked     atomic.Bool // whether Omni has answered a call
	afterCall time.Time   // what the clock says from then on; zero: now
}

func newBench(t *testing.T) *bench {
	t.Helper()

	sim, err := omnisim.Start(omnisim.Options{})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(sim.Close)

	b := &bench{
		t: t, omni: sim, events: events.NewFakeRecorder(1000), objects: metrics.NewObjects(), calls: metrics.NewCalls(), now: time.Now(),
	}
	if b.key, err = sim.CreateServiceAccount("operator", omnisim.RoleOperator, 30*24*time.Hour); err != nil {
		t.Fatal(err)
	}

	b.newClient()
	b.pool = session.NewPool(t.Context(), session.PoolOptions{Observer: func(uid, method, code string, took time.Duration) {
		b.asked.Store(true)
		b.calls.Observe(uid, method, code, took)
	}})
	t.Cleanup(b.pool.Close)

	b.start(EndpointPolicy{})

	return b
}

// start makes the controller, as a start of the program does.
func (b *bench) start(policy EndpointPolicy) {
	r := newReconciler(b.client, sources.Policy{}.Reader(b.client), b.events, Options{
		Pool: b.pool, Objects: b.objects, Calls: b.calls, Endpoints: policy, Now: b.clock,
	})
	b.loop = loop.New(r.kind(), loop.Settings{Client: b.client, Events: b.events})
}

func (b *bench) clock() time.Time {
	if !b.afterCall.IsZero() && b.asked.Load() {
		return b.afterCall
	}

	return b.now
}

func (b *bench) newClient() {
	b.t.Helper()

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			b.t.Fatal(err)
		}
	}

	builder := fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(&v1alpha1.OmniConnection{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "main", UID: "uid-main", Generation: 1},
			Spec: v1alpha1.OmniConnectionSpec{
				Endpoint: b.omni.Endpoint(), CABundle: b.omni.CAPEM(),
				Auth: v1alpha1.OmniConnectionAuth{ServiceAccountSecretRef: v1alpha1.SecretKeyReference{Name: "key", Key: "serviceAccountKey"}},
			},
		}).
		WithStatusSubresource(&v1alpha1.OmniConnection{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				b.writes++

				return c.Patch(ctx, o, p, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				b.writes++

				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		})

	for _, i := range index.All() {
		builder = builder.WithIndex(i.Object, i.Name, i.Values)
	}

	b.client = builder.Build()
}

func (b *bench) run() reconcile.Result {
	b.t.Helper()

	result, err := b.loop.Reconcile(b.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: "main"}})
	if err != nil {
		b.t.Fatal(err)
	}

	for {
		select {
		case event := <-b.events.Events:
			b.seen = append(b.seen, event)
		default:
			return result
		}
	}
}

func (b *bench) get() *v1alpha1.OmniConnection {
	b.t.Helper()

	found := &v1alpha1.OmniConnection{}
	if err := b.client.Get(b.t.Context(), types.NamespacedName{Namespace: "team", Name: "main"}, found); err != nil {
		b.t.Fatal(err)
	}

	return found
}

func (b *bench) edit(edit func(*v1alpha1.OmniConnection)) {
	b.t.Helper()

	object := b.get()
	edit(object)
	object.Generation++

	if err := b.client.Update(b.t.Context(), object); err != nil {
		b.t.Fatal(err)
	}
}

// secret writes the Secret, making it if there is none.
func (b *bench) secret(name, value string) {
	b.t.Helper()

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}

	err := b.client.Get(b.t.Context(), client.ObjectKeyFromObject(secret), secret)
	secret.Data = map[string][]byte{"serviceAccountKey": []byte(value)}

	if apierrors.IsNotFound(err) {
		err = b.client.Create(b.t.Context(), secret)
	} else if err == nil {
		err = b.client.Update(b.t.Context(), secret)
	}

	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) finalizers(secret string) []string {
	b.t.Helper()

	found := &corev1.Secret{}
	if err := b.client.Get(b.t.Context(), types.NamespacedName{Namespace: "team", Name: secret}, found); err != nil {
		b.t.Fatal(err)
	}

	return found.Finalizers
}

func cluster(name string) *v1alpha1.OmniCluster {
	return &v1alpha1.OmniCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name},
		Spec:       v1alpha1.OmniClusterSpec{ConnectionRef: v1alpha1.LocalObjectReference{Name: "main"}},
	}
}

// expect checks a condition and Ready, and that a second run writes nothing.
func (b *bench) expect(condition string, status metav1.ConditionStatus, reason string, texts ...string) {
	b.t.Helper()
	b.run()

	for _, conditionType := range []string{condition, "Ready"} {
		c := apimeta.FindStatusCondition(b.get().Status.Conditions, conditionType)
		if c == nil || c.Status != status || c.Reason != reason {
			b.t.Fatalf("%s: %+v", conditionType, c)
		}

		for _, text := range texts {
			if !strings.Contains(c.Message, text) {
				b.t.Errorf("%s: message %q does not say %q", conditionType, c.Message, text)
			}
		}
	}

	writes := b.writes
	b.run()

	if b.writes != writes {
		b.t.Errorf("the second run made %d writes", b.writes-writes)
	}
}
