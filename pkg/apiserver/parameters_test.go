package apiserver

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

// Informers of the kinds that the plugins know come from the factory, which readiness checks; those of parameters do
// not.
func TestWatchParametersApart(t *testing.T) {
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	apart := WatchParametersApart(factory)

	if got, err := apart.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}); err == nil {
		t.Errorf("got %v", got)
	}

	ctx, cancel := context.WithCancel(t.Context())

	apart.Core().V1().Namespaces().Informer()
	apart.Start(ctx.Done())

	synced := factory.WaitForCacheSync(ctx.Done())
	if len(synced) != 1 {
		t.Errorf("informers %v, want that of namespaces alone", synced)
	}

	cancel()
	factory.Shutdown()
}
