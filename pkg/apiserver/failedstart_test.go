package apiserver_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver"
	"omni.texashpc.com/omni-cluster-operator/test/etcdtest"
)

// TestAFailedStartEndsTheStorage: what watches for a kind goes before the etcd that it watches.
func TestAFailedStartEndsTheStorage(t *testing.T) {
	const works = 3

	etcd := etcdtest.Start(t, t.TempDir())

	config, err := apiserver.NewConfig()
	if err != nil {
		t.Fatal(err)
	}

	applyOptions(t, config, etcd.Endpoint())

	var made, ended atomic.Int32

	broken := errors.New("the fourth kind has no storage")

	apiserver.StoreIn(&config.Generic.Config, func(config *storagebackend.ConfigForResource, prefix string,
		keyOf func(runtime.Object) (string, error), newObject, newList func() runtime.Object, attributes storage.AttrFunc,
		triggers storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		if made.Add(1) > works {
			return nil, nil, broken
		}

		kind, end, err := etcd.Storage(config, prefix, keyOf, newObject, newList, attributes, triggers, indexers)

		return kind, func() { ended.Add(1); end() }, err
	})

	if _, err := config.Complete().New(); !errors.Is(err, broken) {
		t.Fatalf("got %v, want %v", err, broken)
	}

	if ended.Load() != works {
		t.Errorf("%d of %d kinds have ended", ended.Load(), works)
	}
}
