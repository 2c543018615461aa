package kittest

import (
	"testing"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
)

// verbs calls a store as the API's handlers do; any error ends the test.
type verbs[T kit.Object] struct {
	*suite[T]

	t       *testing.T
	storage *kit.Storage
}

func (s *suite[T]) verbs(t *testing.T, storage *kit.Storage) verbs[T] {
	t.Helper()

	return verbs[T]{suite: s, t: t, storage: storage}
}

func (v verbs[T]) create(obj T) T {
	v.t.Helper()

	created, err := v.storage.Main.Create(v.request(v.t, ""), obj, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		v.t.Fatalf("create: %v", err)
	}

	return created.(T)
}

func (v verbs[T]) get(name string) T {
	v.t.Helper()

	obj, err := v.storage.Main.Get(v.request(v.t, ""), name, &metav1.GetOptions{})
	if err != nil {
		v.t.Fatalf("get: %v", err)
	}

	return obj.(T)
}

// update changes the object through the main resource.
func (v verbs[T]) update(name string, change func(T)) T {
	v.t.Helper()

	return v.write(v.storage.Main, "", name, change)
}

// updateStatus changes the object through /status.
func (v verbs[T]) updateStatus(name string, change func(T)) T {
	v.t.Helper()

	return v.write(v.storage.Status, "status", name, change)
}

func (v verbs[T]) write(updater rest.Updater, subresource, name string, change func(T)) T {
	v.t.Helper()

	obj, err := v.tryWrite(updater, subresource, name, change)
	if err != nil {
		v.t.Fatalf("update: %v", err)
	}

	return obj
}

func (v verbs[T]) tryWrite(updater rest.Updater, subresource, name string, change func(T)) (T, error) {
	v.t.Helper()

	obj := v.get(name).DeepCopyObject().(T)
	change(obj)

	updated, _, err := updater.Update(v.request(v.t, subresource), name, rest.DefaultUpdatedObjectInfo(obj),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		var none T

		return none, err
	}

	return updated.(T), nil
}

func (v verbs[T]) delete(name string, dryRun ...string) error {
	v.t.Helper()

	_, _, err := v.storage.Main.Delete(v.request(v.t, ""), name, rest.ValidateAllObjectFunc,
		&metav1.DeleteOptions{DryRun: dryRun})

	return err
}

func (v verbs[T]) deleteCollection() error {
	v.t.Helper()

	_, err := v.storage.Main.DeleteCollection(v.request(v.t, ""), rest.ValidateAllObjectFunc,
		&metav1.DeleteOptions{}, &metainternalversion.ListOptions{})

	return err
}
