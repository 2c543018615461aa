package omniconnection

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// A Secret that no object may use is not held, and is let go if it was held before it was protected.
func TestProtectedSecretIsNeitherUsedNorHeld(t *testing.T) {
	b := newBench(t)
	b.secret("key", b.key)
	if err := b.client.Create(t.Context(), cluster("demo")); err != nil {
		t.Fatal(err)
	}

	b.expect("Reachable", "True", "Connected")

	if got := b.finalizers("key"); len(got) != 1 {
		t.Fatalf("held by %q", got)
	}

	secret := &corev1.Secret{}
	if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "key"}, secret); err != nil {
		t.Fatal(err)
	}

	secret.Labels = map[string]string{v1alpha1.LabelProtected: v1alpha1.ProtectedValue}
	if err := b.client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}

	b.expect("CredentialsFound", "False", v1alpha1.ReasonSecretProtected)

	if got := b.finalizers("key"); len(got) != 0 {
		t.Errorf("still held by %q", got)
	}
}

func TestSecretIsKeptWhileItIsUsed(t *testing.T) {
	b := newBench(t)
	b.secret("key", b.key)
	b.expect("Reachable", "True", "Connected")

	if got := b.finalizers("key"); got != nil {
		t.Errorf("a Secret that no cluster needs is kept: %q", got)
	}

	if err := b.client.Create(t.Context(), cluster("demo")); err != nil {
		t.Fatal(err)
	}

	b.expect("Reachable", "True", "Connected")

	if diff := cmp.Diff([]string{v1alpha1.InUseFinalizer}, b.finalizers("key")); diff != "" {
		t.Error(diff)
	}

	// Another Secret takes over.
	b.secret("second", b.key)
	b.edit(func(o *v1alpha1.OmniConnection) { o.Spec.Auth.ServiceAccountSecretRef.Name = "second" })
	b.expect("Reachable", "True", "Connected")

	if old, current := b.finalizers("key"), b.finalizers("second"); len(old) != 0 || len(current) != 1 {
		t.Errorf("finalizers: %q and %q", old, current)
	}

	// A Secret that is being deleted is used until the last cluster is gone.
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "second"}}
	if err := b.client.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}

	b.expect("Reachable", "True", "Connected")
	b.run()

	// Whoever deleted it to make it again with another key is told why it does not go, and what to do.
	found := apimeta.FindStatusCondition(b.get().Status.Conditions, "CredentialsFound")
	if found == nil || found.Status != metav1.ConditionTrue || !strings.Contains(found.Message, `kept because OmniCluster "demo" cannot do without: write the new key into it`) {
		t.Errorf("condition %+v", found)
	}

	if got := strings.Count(strings.Join(b.seen, "\n"), "Warning SecretKept"); got != 1 {
		t.Errorf("%d events: %q", got, b.seen)
	}

	if err := b.client.Delete(t.Context(), cluster("demo")); err != nil {
		t.Fatal(err)
	}

	b.run()

	if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); !apierrors.IsNotFound(err) {
		t.Errorf("the Secret is kept although nobody needs it: %v", err)
	}
}

func TestDeletionWaitsForClusters(t *testing.T) {
	b := newBench(t)
	b.secret("key", b.key)

	for _, name := range []string{"b", "a"} {
		if err := b.client.Create(t.Context(), cluster(name)); err != nil {
			t.Fatal(err)
		}
	}

	b.run()
	b.pool.Forget("uid-main") // as after a restart

	if err := b.client.Delete(t.Context(), b.get()); err != nil {
		t.Fatal(err)
	}

	b.expect("Ready", "False", "InUse", `2 OmniClusters: "a", "b"`)

	if !apimeta.IsStatusConditionTrue(b.get().Status.Conditions, "DeletionBlocked") {
		t.Errorf("%+v", b.get().Status.Conditions)
	}
}

func TestDeletionEnds(t *testing.T) {
	b := newBench(t)
	b.secret("key", b.key)

	if err := b.client.Create(t.Context(), cluster("a")); err != nil {
		t.Fatal(err)
	}

	b.run()

	if err := b.client.Delete(t.Context(), b.get()); err != nil {
		t.Fatal(err)
	}

	b.run()

	lease, open := b.pool.Get("uid-main")
	if !open {
		t.Fatal("the cluster's own deletion needs the session")
	}

	lease.Release()

	if err := b.client.Delete(t.Context(), cluster("a")); err != nil {
		t.Fatal(err)
	}

	b.run()

	err := b.client.Get(t.Context(), types.NamespacedName{Namespace: "team", Name: "main"}, &v1alpha1.OmniConnection{})
	if !apierrors.IsNotFound(err) {
		t.Fatalf("still there: %v", err)
	}

	if got := b.finalizers("key"); len(got) != 0 {
		t.Errorf("the Secret is kept: %q", got)
	}

	b.run()

	if left := gathered(t, b.objects, b.calls); left != "[]" {
		t.Errorf("metrics of a connection that is gone: %s", left)
	}
}

// The same name with another UID is another object, with a session of its own.
func TestMadeAgain(t *testing.T) {
	b := newBench(t)
	b.secret("key", b.key)
	b.run()

	former := b.get()
	former.Finalizers = nil

	if err := b.client.Update(t.Context(), former); err != nil {
		t.Fatal(err)
	}

	if err := b.client.Delete(t.Context(), former); err != nil {
		t.Fatal(err)
	}

	again := &v1alpha1.OmniConnection{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "main", UID: "uid-again"}, Spec: former.Spec}
	if err := b.client.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}

	b.expect("Reachable", "True", "Connected")

	if _, open := b.pool.Get("uid-main"); open {
		t.Error("the former object's session is open")
	}
}
