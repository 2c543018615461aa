package kittest

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/install"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/embeddedetcd"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
)

// cacheTimeout is how long a watch cache may take to list an empty etcd.
const cacheTimeout = 30 * time.Second

type suite[T kit.Object] struct {
	Case[T]

	etcd *embeddedetcd.Server
}

// storage makes a separate store for one test.
func (s *suite[T]) storage(t *testing.T, decorator generic.StorageDecorator) *kit.Storage {
	t.Helper()

	scheme := runtime.NewScheme()
	install.Install(scheme)

	if err := s.Descriptor.AddFieldLabels(scheme); err != nil {
		t.Fatal(err)
	}

	config := storagebackend.NewDefaultConfig("/registry", install.StorageCodec(scheme))
	config.Transport.ServerList = []string{s.etcd.Endpoint()}
	config.EventsHistoryWindow = storagebackend.DefaultEventsHistoryWindow

	storage, err := kit.NewStorage(s.Descriptor, scheme, generic.RESTOptions{
		StorageConfig:           config.ForResource(s.Descriptor.Resource()),
		Decorator:               decorator,
		DeleteCollectionWorkers: 1,
		ResourcePrefix:          strings.NewReplacer(" ", "-", "#", "-").Replace(strings.ToLower(t.Name())),
	})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(storage.Main.Destroy)

	return storage
}

// plain is a store without watch cache.
func (s *suite[T]) plain(t *testing.T) *kit.Storage {
	t.Helper()

	return s.storage(t, generic.UndecoratedStorage)
}

// cached is a store with the watch cache, as the server uses it.
func (s *suite[T]) cached(t *testing.T) *kit.Storage {
	t.Helper()

	storage := s.storage(t, s.etcd.Storage)

	deadline := time.Now().Add(cacheTimeout)
	for storage.Main.ReadinessCheck() != nil {
		if time.Now().After(deadline) {
			t.Fatal("the watch cache is not ready")
		}

		time.Sleep(10 * time.Millisecond)
	}

	return storage
}

// request is the context of a request for the kind or one of its subresources.
func (s *suite[T]) request(t *testing.T, subresource string) context.Context {
	t.Helper()

	ctx := genericapirequest.WithNamespace(t.Context(), "default")

	return genericapirequest.WithRequestInfo(ctx, &genericapirequest.RequestInfo{
		APIGroup:    v1alpha1.GroupName,
		APIVersion:  v1alpha1.SchemeGroupVersion.Version,
		Resource:    s.Descriptor.Plural,
		Subresource: subresource,
	})
}
