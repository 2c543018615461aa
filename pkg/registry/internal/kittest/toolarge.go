package kittest

import (
	"context"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

// full is a store whose objects have become as large as etcd stores them: each change of one is refused.
type full struct{ storage.Interface }

func (full) GuaranteedUpdate(context.Context, string, runtime.Object, bool, *storage.Preconditions, storage.UpdateFunc, runtime.Object) error {
	return rpctypes.ErrRequestTooLarge
}

func newFull(config *storagebackend.ConfigForResource, resourcePrefix string, cacheKeyFunc func(runtime.Object) (string, error),
	newFunc, newListFunc func() runtime.Object, getAttrsFunc storage.AttrFunc, trigger storage.IndexerFuncs, indexers *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	store, destroy, err := generic.UndecoratedStorage(config, resourcePrefix, cacheKeyFunc, newFunc, newListFunc, getAttrsFunc, trigger, indexers)

	return full{store}, destroy, err
}

// testTooLarge: whatever writes an object says that it is too large, also a deletion, which writes its time.
func (s *suite[T]) testTooLarge(t *testing.T) {
	v := s.verbs(t, s.storage(t, newFull))

	kept := s.valid("foo")
	kept.SetFinalizers([]string{"example.com/keep"})
	v.create(kept)

	write := func(updater rest.Updater, subresource string) error {
		_, err := v.tryWrite(updater, subresource, "foo", func(T) {})

		return err
	}

	got := map[string]error{
		"update":     write(v.storage.Main, ""),
		"status":     write(v.storage.Status, "status"),
		"deletion":   v.delete("foo"),
		"collection": v.deleteCollection(),
	}

	if s.Descriptor.Scale != nil {
		_, got["scale"] = s.writeScale(t, v, "foo", 4)
	}

	for way, err := range got {
		if !apierrors.IsRequestEntityTooLargeError(err) {
			t.Errorf("%s: got %v, want that the object is too large", way, err)
		}
	}
}
