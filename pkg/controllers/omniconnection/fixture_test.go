package omniconnection

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/skew"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
	"omni.texashpc.com/omni-cluster-operator/test/looptest"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// fixture is the controller over a fake API and a simulated Omni.
type fixture struct {
	t       *testing.T
	omni    *omnisim.Server
	key     string
	client  client.WithWatch
	events  *looptest.Events
	pool    *session.Pool
	objects *metrics.Objects
	calls   *metrics.Calls
	loop    *loop.Reconciler[*v1alpha1.OmniConnection, *scope]
	secrets reconcile.Func // the controller of the keys' Secrets
	now     time.Time
	skew    time.Duration // by which the hub's clock is ahead
	writes  int

	asked     atomic.Bool // whether Omni has answered a call
	afterCall time.Time   // what the clock says from then on; zero: now
}

func newFixture(t *testing.T) *fixture {
	t.Helper()

	sim, err := omnisim.Start(omnisim.Options{})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(sim.Close)

	f := &fixture{
		t: t, omni: sim, events: looptest.NewEvents(), objects: metrics.NewObjects(), calls: metrics.NewCalls(),
	}
	if f.key, err = sim.CreateServiceAccount("operator", omnisim.RoleOperator, 30*24*time.Hour); err != nil {
		t.Fatal(err)
	}

	f.now = time.Now() // no key is younger

	f.newClient()
	f.pool = session.NewPool(t.Context(), session.PoolOptions{Observer: func(uid, method, code string, took time.Duration) {
		f.asked.Store(true)
		f.calls.Observe(uid, method, code, took)
	}})
	t.Cleanup(f.pool.Close)

	f.start(EndpointPolicy{})

	return f
}

// start makes the controller, as a start of the program does.
func (f *fixture) start(policy EndpointPolicy) {
	r := newReconciler(f.client, sources.Policy{}.Reader(f.client), f.events, Options{
		Pool: f.pool, Objects: f.objects, Calls: f.calls, Endpoints: policy, Now: f.clock,
		Skew: func() skew.Difference { return skew.Difference{Server: "kube-apiserver", Ahead: f.skew} },
	})
	f.loop, f.secrets = loop.New(r.kind(), loop.Settings{Client: f.client, Events: f.events}), r.releaseSecret
}

func (f *fixture) clock() time.Time {
	if !f.afterCall.IsZero() && f.asked.Load() {
		return f.afterCall
	}

	return f.now
}

func (f *fixture) newClient() {
	f.t.Helper()

	f.client = looptest.NewAPI(&v1alpha1.OmniConnection{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "main", UID: "uid-main", Generation: 1},
		Spec: v1alpha1.OmniConnectionSpec{
			Endpoint: f.omni.Endpoint(), CABundle: f.omni.CAPEM(),
			Auth: v1alpha1.OmniConnectionAuth{ServiceAccountSecretRef: v1alpha1.SecretKeyReference{Name: "key", Key: "serviceAccountKey"}},
		},
	}).WithStatusSubresource(&v1alpha1.OmniConnection{}).WithInterceptorFuncs(looptest.CountWrites(&f.writes)).Build()
}

func (f *fixture) run() reconcile.Result {
	f.t.Helper()

	result, err := f.loop.Reconcile(f.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: "main"}})
	if err != nil {
		f.t.Fatal(err)
	}

	f.runSecrets()

	return result
}

// runSecrets looks at all Secrets once.
func (f *fixture) runSecrets() {
	f.t.Helper()

	list := &corev1.SecretList{}
	if err := f.client.List(f.t.Context(), list); err != nil {
		f.t.Fatal(err)
	}

	for i := range list.Items {
		if _, err := f.secrets(f.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])}); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *fixture) get() *v1alpha1.OmniConnection {
	f.t.Helper()

	found := &v1alpha1.OmniConnection{}
	if err := f.client.Get(f.t.Context(), types.NamespacedName{Namespace: "team", Name: "main"}, found); err != nil {
		f.t.Fatal(err)
	}

	return found
}

func (f *fixture) edit(edit func(*v1alpha1.OmniConnection)) {
	f.t.Helper()

	object := f.get()
	edit(object)
	object.Generation++

	if err := f.client.Update(f.t.Context(), object); err != nil {
		f.t.Fatal(err)
	}
}

// secret writes the Secret, making it if there is none.
func (f *fixture) secret(name, value string) {
	f.t.Helper()

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}

	err := f.client.Get(f.t.Context(), client.ObjectKeyFromObject(secret), secret)
	secret.Data = map[string][]byte{"serviceAccountKey": []byte(value)}

	if apierrors.IsNotFound(err) {
		err = f.client.Create(f.t.Context(), secret)
	} else if err == nil {
		err = f.client.Update(f.t.Context(), secret)
	}

	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) finalizers(secret string) []string {
	f.t.Helper()

	found := &corev1.Secret{}
	if err := f.client.Get(f.t.Context(), types.NamespacedName{Namespace: "team", Name: secret}, found); err != nil {
		f.t.Fatal(err)
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
func (f *fixture) expect(condition string, status metav1.ConditionStatus, reason string, texts ...string) {
	f.t.Helper()
	f.run()

	for _, conditionType := range []string{condition, "Ready"} {
		c := apimeta.FindStatusCondition(f.get().Status.Conditions, conditionType)
		if c == nil || c.Status != status || c.Reason != reason {
			f.t.Fatalf("%s: %+v", conditionType, c)
		}

		for _, text := range texts {
			if !strings.Contains(c.Message, text) {
				f.t.Errorf("%s: message %q does not say %q", conditionType, c.Message, text)
			}
		}
	}

	writes := f.writes
	f.run()

	if f.writes != writes {
		f.t.Errorf("the second run made %d writes", f.writes-writes)
	}
}
