package apiserver_test

import (
	"context"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// A watch from a version that a restored storage has not reached ends with an event of reason Expired. An error of the request would
// not do: a RetryWatcher, such as Argo CD's, takes it for a passing failure and asks for the same version for ever.
func TestLostVersionEndsWatches(t *testing.T) {
	s := startServer(t)
	machines := s.client.OmniV1alpha1().OmniMachines("default")

	list, err := machines.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}

	lost := list.ResourceVersion + "000"

	retrying, err := watchtools.NewRetryWatcherWithContext(t.Context(), lost, &cache.ListWatch{WatchFuncWithContext: machines.Watch})
	if err != nil {
		t.Fatal(err)
	}
	defer retrying.Stop()

	event := await.Receive(t, "an event from the lost version", retrying.ResultChan())

	status, isStatus := event.Object.(*metav1.Status)
	if event.Type != watch.Error || !isStatus || status.Code != http.StatusGone || !apierrors.IsResourceExpired(apierrors.FromObject(status)) {
		t.Errorf("event %+v", event)
	}

	await.Receive(t, "it does not ask again", retrying.Done())
}

// listing is a source of a reflector that lists, and does not stream the list.
type listing struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is what a reflector asks for.
func (listing) IsWatchListSemanticsUnSupported() bool { return true }

// A reflector whose version was lost lists again.
func TestLostVersionMakesReflectorsList(t *testing.T) {
	s := startServer(t)
	machines := s.client.OmniV1alpha1().OmniMachines("default")
	lists := make(chan struct{}, 2)

	source := listing{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			lists <- struct{}{}

			list, err := machines.List(ctx, options)
			if err != nil {
				return nil, err
			}

			list.ResourceVersion += "000" // as if it was listed before the storage was restored

			return list, nil
		},
		WatchFuncWithContext: machines.Watch,
	}}

	go cache.NewReflector(source, &v1alpha1.OmniMachine{}, cache.NewStore(cache.MetaNamespaceKeyFunc), 0).RunWithContext(t.Context())

	for range 2 {
		await.Receive(t, "the reflector lists", lists)
	}
}
