package embeddedetcd

import (
	"fmt"
	"sync"
	"time"

	etcdkubernetes "go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// Storage makes the storage of a kind, with its watch cache: a generic.StorageDecorator that does with an
// InProcessClient what the library's does with an endpoint. Each kind has a client of its own, so that the watch of one
// does not wait for that of another.
func (s *Server) Storage(config *storagebackend.ConfigForResource, prefix string, keyOf func(runtime.Object) (string, error),
	newObject, newList func() runtime.Object, attributes storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	stored, destroy, err := s.store(config, prefix, newObject, newList)
	if err != nil {
		return nil, nil, err
	}

	cached, err := cacher.NewCacherFromConfig(cacher.Config{
		Storage:             stored,
		Versioner:           storage.APIObjectVersioner{},
		GroupResource:       config.GroupResource,
		EventsHistoryWindow: config.EventsHistoryWindow,
		ResourcePrefix:      prefix,
		KeyFunc:             keyOf,
		NewFunc:             newObject,
		NewListFunc:         newList,
		GetAttrsFunc:        attributes,
		IndexerFuncs:        triggers,
		Indexers:            indexers,
		Codec:               config.Codec,
	})
	if err != nil {
		destroy()

		return nil, nil, fmt.Errorf("make the watch cache of %s: %w", config.GroupResource, err)
	}

	delegator := cacher.NewCacheDelegator(cached, stored)

	return delegator, sync.OnceFunc(func() {
		delegator.Stop()
		cached.Stop()
		destroy()
	}), nil
}

// store is the storage below the watch cache.
func (s *Server) store(config *storagebackend.ConfigForResource, prefix string, newObject, newList func() runtime.Object,
) (storage.Interface, func(), error) {
	client, err := s.InProcessClient()
	if err != nil {
		return nil, nil, err
	}

	client.KV = etcd3.NewETCDLatencyTracker(client.KV)

	transformer := config.Transformer
	if transformer == nil {
		transformer = identity.NewEncryptCheckTransformer()
	}

	decoder := etcd3.NewDefaultDecoder(config.Codec, storage.APIObjectVersioner{})
	deletesCorrupt := utilfeature.DefaultFeatureGate.Enabled(features.AllowUnsafeMalformedObjectDeletion)

	if deletesCorrupt {
		transformer = etcd3.WithCorruptObjErrorHandlingTransformer(transformer)
		decoder = etcd3.WithCorruptObjErrorHandlingDecoder(decoder)
	}

	compactor, err := s.sharedCompactor(config.CompactionInterval)
	if err != nil {
		_ = client.Close()

		return nil, nil, err
	}

	kubernetesClient := &etcdkubernetes.Client{Client: client}
	kubernetesClient.Kubernetes = kubernetesClient

	stored, err := etcd3.New(kubernetesClient, compactor, config.Codec, newObject, newList, config.Prefix, prefix, config.GroupResource,
		transformer, config.LeaseManagerConfig, decoder, storage.APIObjectVersioner{})
	if err != nil {
		_ = client.Close()

		return nil, nil, fmt.Errorf("make the storage of %s: %w", config.GroupResource, err)
	}

	destroy := func() {
		stored.Close()
		_ = client.Close()
	}

	if deletesCorrupt {
		return etcd3.NewStoreWithUnsafeCorruptObjectDeletion(stored, config.GroupResource), destroy, nil
	}

	return stored, destroy, nil
}

// compactor removes old revisions of all kinds.
type compactor interface {
	etcd3.Compactor
	Stop()
}

// sharedCompactor returns the compactor, and starts it for the first kind. It has a client of its own and runs until Stop:
// the kinds come and go without it.
func (s *Server) sharedCompactor(interval time.Duration) (etcd3.Compactor, error) {
	s.compaction.Lock()
	defer s.compaction.Unlock()

	if s.compactor != nil {
		return s.compactor, nil
	}

	client, err := s.InProcessClient()
	if err != nil {
		return nil, err
	}

	s.compactor = etcd3.NewCompactor(client, interval, clock.RealClock{}, nil)

	return s.compactor, nil
}

func (s *Server) stopCompactor() {
	s.compaction.Lock()
	defer s.compaction.Unlock()

	if s.compactor != nil {
		s.compactor.Stop()
	}
}
