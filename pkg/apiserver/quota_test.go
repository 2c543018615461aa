package apiserver_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/quota"
	"omni.texashpc.com/omni-cluster-operator/test/await"
)

func withLimits(limits quota.Limits) func(*apiserver.Config) {
	return func(config *apiserver.Config) { config.Limits = limits }
}

// create makes a machine of about so many bytes.
func (s *server) create(t *testing.T, namespace, name string, bytes int, options metav1.CreateOptions) error {
	t.Helper()

	m := machine(name, "c", "30303031-3233-3435-3637-383930313230")
	m.Annotations = map[string]string{"filler": strings.Repeat("x", bytes)}
	_, err := s.client.OmniV1alpha1().OmniMachines(namespace).Create(t.Context(), m, options)

	return err
}

func wantExceeded(t *testing.T, err error, parts ...string) {
	t.Helper()

	if !apierrors.IsForbidden(err) {
		t.Fatalf("got %v, want 403", err)
	}

	for _, part := range append(parts, "exceeded quota: ", "of omni-apiserver raised") {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("want %q in %v", part, err)
		}
	}
}

func TestObjectsPerNamespace(t *testing.T) {
	s := startServer(t, withConfig(withLimits(quota.Limits{NamespaceObjects: 2, Objects: 3})))

	for _, name := range []string{"m1", "m2"} {
		if err := s.create(t, "a", name, 10, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}

	const full = "namespace a, requested: objects=1, used: objects=2, limited: objects=2: "
	wantExceeded(t, s.create(t, "a", "m3", 10, metav1.CreateOptions{}), full, "--max-objects-per-namespace", `"m3" is forbidden`)
	wantExceeded(t, s.create(t, "a", "m3", 10, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}), full)

	for range 3 { // a dry run does not count
		if err := s.create(t, "b", "m1", 10, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			t.Fatal(err)
		}
	}

	if err := s.create(t, "b", "m1", 10, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	wantExceeded(t, s.create(t, "b", "m2", 10, metav1.CreateOptions{}), "all namespaces, requested: objects=1, used: objects=3, limited: objects=3: ", "--max-objects of")

	if err := s.client.OmniV1alpha1().OmniMachines("a").Delete(t.Context(), "m1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	await.Until(t, "room after a deletion", func() bool { return s.create(t, "b", "m2", 10, metav1.CreateOptions{}) == nil })
}

// TestFullNamespace: in a full namespace, objects can be read, deleted, made smaller, and maintained by controllers.
func TestFullNamespace(t *testing.T) {
	dir := t.TempDir()

	// The namespace has more than the limit allows, stored before the limit was set.
	t.Run("before", func(t *testing.T) {
		s := startServer(t, onDirectory(dir))
		if err := s.create(t, "a", "m", 20_000, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	})

	s := startServer(t, onDirectory(dir), withConfig(withLimits(quota.Limits{NamespaceBytes: 15_000})))
	machines := s.client.OmniV1alpha1().OmniMachines("a")

	wantExceeded(t, s.create(t, "a", "other", 100, metav1.CreateOptions{}), "limited: bytes=15000", "--max-bytes-per-namespace")

	if err := s.create(t, "b", "other", 100, metav1.CreateOptions{}); err != nil {
		t.Errorf("another namespace: %v", err)
	}

	patch := func(patch string, subresources ...string) error {
		_, err := machines.Patch(t.Context(), "m", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "test"}, subresources...)

		return err
	}

	wantExceeded(t, patch(`{"metadata":{"annotations":{"more":"`+strings.Repeat("x", 500)+`"}}}`), "namespace a, requested: bytes=")

	if err := patch(`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"R","message":"`+strings.Repeat("x", 2000)+`","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, "status"); err != nil {
		t.Errorf("the status: %v", err)
	}

	if err := patch(`{"metadata":{"annotations":{"filler":"` + strings.Repeat("x", 11_500) + `"}}}`); err != nil {
		t.Errorf("smaller: %v", err)
	}

	await.Until(t, "it is counted", func() bool {
		return patch(`{"metadata":{"annotations":{"filler":"`+strings.Repeat("x", 14_900)+`"}}}`) != nil
	})

	if err := patch(`{"metadata":{"finalizers":["example.com/hold"]}}`); err != nil {
		t.Errorf("a finalizer: %v", err)
	}

	if err := machines.Delete(t.Context(), "m", metav1.DeleteOptions{}); err != nil {
		t.Errorf("deletion: %v", err)
	}

	if err := patch(`{"metadata":{"finalizers":null}}`); err != nil {
		t.Errorf("the end: %v", err)
	}

	await.Until(t, "room after the deletion", func() bool { return s.create(t, "a", "other", 100, metav1.CreateOptions{}) == nil })
}

// TestBurst: concurrent writes together do not exceed the limit.
func TestBurst(t *testing.T) {
	const limit, writers, each = 10, 4, 10

	s := startServer(t, withConfig(withLimits(quota.Limits{NamespaceObjects: limit})))

	var (
		writing sync.WaitGroup
		stored  atomic.Int64
	)

	for w := range writers {
		writing.Go(func() {
			for i := range each {
				var refused *apierrors.StatusError

				switch err := s.create(t, "a", fmt.Sprintf("m-%d-%d", w, i), 10, metav1.CreateOptions{}); {
				case err == nil:
					stored.Add(1)
				case !errors.As(err, &refused) || refused.ErrStatus.Code != http.StatusForbidden:
					t.Error(err)
				}
			}
		})
	}

	writing.Wait()

	if stored.Load() != limit {
		t.Errorf("%d objects were stored", stored.Load())
	}
}

// TestReplicasCountTogether: a replica sees what the others write.
func TestReplicasCountTogether(t *testing.T) {
	limits := withLimits(quota.Limits{NamespaceObjects: 1})
	first := startServer(t, withConfig(limits))
	second := startServer(t, onEtcd(first.etcd), withConfig(limits))

	if err := first.create(t, "a", "m1", 10, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	await.Until(t, "the other replica knows", func() bool {
		err := second.create(t, "a", "m2", 10, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})

		return apierrors.IsForbidden(err)
	})
}
