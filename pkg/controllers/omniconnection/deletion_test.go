package omniconnection

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// A Secret that no object may use is not held, and is let go if it was held before it was protected.
func TestProtectedSecretIsNeitherUsedNorHeld(t *testing.T) {
	f := newFixture(t)
	f.secret("key", f.key)
	if err := f.client.Create(t.Context(), cluster("demo")); err != nil {
		t.Fatal(err)
	}

	f.expect("Reachable", "True", "Connected")

	if got := f.finalizers("key"); len(got) != 1 {
		t.Fatalf("held by %q", got)
	}

	secret := &corev1.Secret{}
	if err := f.client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "key"}, secret); err != nil {
		t.Fatal(err)
	}

	secret.Labels = map[string]string{v1alpha1.LabelProtected: v1alpha1.ProtectedValue}
	if err := f.client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}

	f.expect("CredentialsFound", "False", v1alpha1.ReasonSecretProtected)

	if got := f.finalizers("key"); len(got) != 0 {
		t.Errorf("still held by %q", got)
	}
}

// A Secret that holds no key is not held, whoever names it: its owners could not delete it. One that was held stays so,
// because a key that is written wrong and corrected is still needed.
func TestOnlyKeysAreHeld(t *testing.T) {
	f := newFixture(t)

	if err := f.client.Create(t.Context(), cluster("demo")); err != nil {
		t.Fatal(err)
	}

	for name, test := range map[string]struct{ value, reason string }{
		"a password":           {"hunter2", v1alpha1.ReasonKeyInvalid},
		"an environment block": {"OMNI_ENDPOINT=https://a\nOMNI_SERVICE_ACCOUNT_KEY=" + f.key, v1alpha1.ReasonKeyIsEnvironmentBlock},
		"nothing":              {"", v1alpha1.ReasonKeyInvalid},
	} {
		f.secret("key", test.value)
		f.expect("CredentialsFound", "False", test.reason)

		if got := f.finalizers("key"); len(got) != 0 {
			t.Errorf("%s: held by %q", name, got)
		}
	}

	f.edit(func(o *v1alpha1.OmniConnection) { o.Spec.Auth.ServiceAccountSecretRef.Key = "another" })
	f.expect("CredentialsFound", "False", v1alpha1.ReasonSecretKeyNotFound)

	if got := f.finalizers("key"); len(got) != 0 {
		t.Errorf("held by %q without the key", got)
	}

	f.edit(func(o *v1alpha1.OmniConnection) { o.Spec.Auth.ServiceAccountSecretRef.Key = "serviceAccountKey" })
	f.secret("key", f.key)
	f.expect("Reachable", "True", "Connected")
	f.secret("key", "hunter2")
	f.expect("CredentialsFound", "False", v1alpha1.ReasonKeyInvalid)

	if got := f.finalizers("key"); len(got) != 1 {
		t.Errorf("a key that was held is held by %q", got)
	}
}

func TestSecretIsKeptWhileItIsUsed(t *testing.T) {
	f := newFixture(t)
	f.secret("key", f.key)
	f.expect("Reachable", "True", "Connected")

	if got := f.finalizers("key"); got != nil {
		t.Errorf("a Secret that no cluster needs is kept: %q", got)
	}

	if err := f.client.Create(t.Context(), cluster("demo")); err != nil {
		t.Fatal(err)
	}

	f.expect("Reachable", "True", "Connected")

	if diff := cmp.Diff([]string{v1alpha1.InUseFinalizer}, f.finalizers("key")); diff != "" {
		t.Error(diff)
	}

	// Another Secret takes over.
	f.secret("second", f.key)
	f.edit(func(o *v1alpha1.OmniConnection) { o.Spec.Auth.ServiceAccountSecretRef.Name = "second" })
	f.expect("Reachable", "True", "Connected")

	if old, current := f.finalizers("key"), f.finalizers("second"); len(old) != 0 || len(current) != 1 {
		t.Errorf("finalizers: %q and %q", old, current)
	}

	// A Secret that is being deleted is used until the last cluster is gone.
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "second"}}
	if err := f.client.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}

	f.expect("Reachable", "True", "Connected")
	f.run()

	// Whoever deleted it to make it again with another key is told why it does not go, and what to do.
	found := apimeta.FindStatusCondition(f.get().Status.Conditions, "CredentialsFound")
	if found == nil || found.Status != metav1.ConditionTrue || !strings.Contains(found.Message, `kept because OmniCluster "demo" cannot do without: write the new key into it`) {
		t.Errorf("condition %+v", found)
	}

	if got := strings.Count(strings.Join(f.events.All(), "\n"), "Warning SecretKept"); got != 1 {
		t.Errorf("%d events: %q", got, f.events.All())
	}

	if err := f.client.Delete(t.Context(), cluster("demo")); err != nil {
		t.Fatal(err)
	}

	f.run()

	if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); !apierrors.IsNotFound(err) {
		t.Errorf("the Secret is kept although nobody needs it: %v", err)
	}
}

func TestDeletionWaitsForClusters(t *testing.T) {
	f := newFixture(t)
	f.secret("key", f.key)

	for _, name := range []string{"b", "a"} {
		if err := f.client.Create(t.Context(), cluster(name)); err != nil {
			t.Fatal(err)
		}
	}

	f.run()
	f.pool.Forget("uid-main") // as after a restart

	if err := f.client.Delete(t.Context(), f.get()); err != nil {
		t.Fatal(err)
	}

	f.expect("Ready", "False", "InUse", `2 OmniClusters: "a", "b"`)

	if !apimeta.IsStatusConditionTrue(f.get().Status.Conditions, "DeletionBlocked") {
		t.Errorf("%+v", f.get().Status.Conditions)
	}
}

func TestDeletionEnds(t *testing.T) {
	f := newFixture(t)
	f.secret("key", f.key)

	if err := f.client.Create(t.Context(), cluster("a")); err != nil {
		t.Fatal(err)
	}

	f.run()

	if err := f.client.Delete(t.Context(), f.get()); err != nil {
		t.Fatal(err)
	}

	f.run()

	lease, open := f.pool.Get("uid-main")
	if !open {
		t.Fatal("the cluster's own deletion needs the session")
	}

	lease.Release()

	if err := f.client.Delete(t.Context(), cluster("a")); err != nil {
		t.Fatal(err)
	}

	f.run()

	err := f.client.Get(t.Context(), types.NamespacedName{Namespace: "team", Name: "main"}, &v1alpha1.OmniConnection{})
	if !apierrors.IsNotFound(err) {
		t.Fatalf("still there: %v", err)
	}

	if got := f.finalizers("key"); len(got) != 0 {
		t.Errorf("the Secret is kept: %q", got)
	}

	f.run()

	if left := gathered(t, f.objects, f.calls); left != "[]" {
		t.Errorf("metrics of a connection that is gone: %s", left)
	}
}

// A connection may be gone before anybody saw that its Secret was held: by a finalizer that was taken off by hand, a crash,
// or a cache that did not show the Secret's own finalizer yet.
func TestSecretIsLetGoAfterItsConnection(t *testing.T) {
	f := newFixture(t)
	f.secret("key", f.key)

	if err := f.client.Create(t.Context(), cluster("demo")); err != nil {
		t.Fatal(err)
	}

	f.expect("Reachable", "True", "Connected")

	if got := f.finalizers("key"); len(got) != 1 {
		t.Fatalf("held by %q", got)
	}

	former := f.get()
	former.Finalizers = nil

	if err := f.client.Update(t.Context(), former); err != nil {
		t.Fatal(err)
	}

	if err := f.client.Delete(t.Context(), former); err != nil {
		t.Fatal(err)
	}

	f.start(EndpointPolicy{})
	f.run()

	if got := f.finalizers("key"); len(got) != 0 {
		t.Errorf("held by %q for a connection that is gone", got)
	}
}

// What may free a Secret wakes its controller: the end of a cluster, and a connection that goes or names another Secret.
func TestWhatWakesASecret(t *testing.T) {
	f := newFixture(t)
	r := newReconciler(f.client, f.client, f.events, Options{Pool: f.pool, Now: f.clock})
	want := []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: "team", Name: "key"}}}

	if diff := cmp.Diff(want, secretOf(t.Context(), f.get())); diff != "" {
		t.Errorf("a connection: %s", diff)
	}

	if diff := cmp.Diff(want, r.secretOfCluster(t.Context(), cluster("demo"))); diff != "" {
		t.Errorf("a cluster: %s", diff)
	}

	other := cluster("demo")
	other.Spec.ConnectionRef.Name = "none"

	if got := r.secretOfCluster(t.Context(), other); got != nil {
		t.Errorf("a cluster without a connection: %v", got)
	}
}

// The same name with another UID is another object, with a session of its own.
func TestMadeAgain(t *testing.T) {
	f := newFixture(t)
	f.secret("key", f.key)
	f.run()

	former := f.get()
	former.Finalizers = nil

	if err := f.client.Update(t.Context(), former); err != nil {
		t.Fatal(err)
	}

	if err := f.client.Delete(t.Context(), former); err != nil {
		t.Fatal(err)
	}

	again := &v1alpha1.OmniConnection{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "main", UID: "uid-again"}, Spec: former.Spec}
	if err := f.client.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}

	f.expect("Reachable", "True", "Connected")

	if _, open := f.pool.Get("uid-main"); open {
		t.Error("the former object's session is open")
	}
}

// Nothing is kept of connections that are gone, whether their end was seen or not.
func TestNothingIsKeptOfWhatIsGone(t *testing.T) {
	for name, seen := range map[string]bool{"seen": true, "made again meanwhile": false} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			r := newReconciler(f.client, f.client, f.events, Options{Pool: f.pool, Objects: f.objects, Calls: f.calls, Now: f.clock})
			connection := f.get()

			// As the phases do, which a connection with a key that ends soon makes do it all.
			r.newScope(connection)
			r.warned[connection.UID], r.kept[connection.UID] = f.now, "uid-key"
			r.unrestricted[connection.UID] = unrestricted{secret: "uid-key"}

			asked := 0
			ask := func() {
				_ = r.ask(t.Context(), connection.UID, check{}, func(context.Context) error { asked++; return nil })
			}

			ask()

			if seen {
				r.gone(client.ObjectKeyFromObject(connection))
			} else {
				again := connection.DeepCopy()
				again.UID = "uid-again"
				r.newScope(again)
			}

			if len(r.warned)+len(r.kept)+len(r.unrestricted) != 0 {
				t.Errorf("kept: %v, %v, %v", r.warned, r.kept, r.unrestricted)
			}

			if ask(); asked != 2 {
				t.Error("the last check is kept")
			}
		})
	}
}
