package kittest

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
	"omni.texashpc.com/omni-cluster-operator/test/etcdtest"
)

// Guard is a descriptor with a delete guard.
type Guard[T kit.Object] struct {
	// Descriptor is the descriptor under test.
	Descriptor *kit.Descriptor[T]
	// Valid makes an object whose deletion the guard refuses.
	Valid func() T
	// Confirm changes the object so that the guard allows its deletion.
	Confirm func(T)
}

// RunGuard tests every way in which an object can be deleted: refused before the confirmation, allowed
// after it, and allowed for objects that are being deleted already.
func RunGuard[T kit.Object](t *testing.T, g Guard[T]) {
	t.Helper()

	s := &suite[T]{Case: Case[T]{Descriptor: g.Descriptor, Valid: g.Valid}, etcd: etcdtest.Start(t, t.TempDir())}
	v := s.verbs(t, s.plain(t))

	kept := s.valid("foo")
	kept.SetFinalizers([]string{"example.com/keep"})
	v.create(kept)

	ways := map[string]func() error{
		"plain":      func() error { return v.delete("foo") },
		"dry run":    func() error { return v.delete("foo", metav1.DryRunAll) },
		"collection": v.deleteCollection,
	}
	for name, way := range ways {
		if err := way(); !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v, want Forbidden", name, err)
		}
	}

	if v.get("foo").GetDeletionTimestamp() != nil {
		t.Fatal("a refused deletion began")
	}

	v.update("foo", g.Confirm)

	if err := v.delete("foo"); err != nil {
		t.Fatalf("confirmed: %v", err)
	}

	// Taking the confirmation back after the deletion began has no effect.
	v.update("foo", func(obj T) { obj.SetAnnotations(nil) })

	for name, way := range ways {
		if err := way(); err != nil {
			t.Errorf("%s while being deleted: %v", name, err)
		}
	}
}
