package apiserver_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// TestWatchFromTheFuture: a version that the storage never had comes from before a restore; if the watch were silent,
// its client would never notice.
func TestWatchFromTheFuture(t *testing.T) {
	s := startServer(t)
	machines := s.client.OmniV1alpha1().OmniMachines("default")

	list, err := machines.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}

	if stream, err := machines.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion}); err != nil {
		t.Errorf("a watch from now on: %v", err)
	} else {
		stream.Stop()
	}

	stream, err := machines.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "999999999"})
	if err != nil {
		t.Fatalf("a watch from the future: %v, want an event", err)
	}
	defer stream.Stop()

	if event := <-stream.ResultChan(); event.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
		t.Errorf("a watch from the future: event %+v, want expired", event)
	}

	if event, open := <-stream.ResultChan(); open {
		t.Errorf("the watch goes on with %+v", event)
	}
}

// TestWatchList: a client that streams its initial list gets the objects that its selector names, the
// bookmark that ends the list, and then the changes.
func TestWatchList(t *testing.T) {
	s := startServer(t)
	machines := s.client.OmniV1alpha1().OmniMachines("default")

	for name, cluster := range map[string]string{"one": "production", "two": "staging"} {
		id := "30303031-3233-3435-3637-38393031323" + map[string]string{"one": "1", "two": "2"}[name]
		if _, err := machines.Create(t.Context(), machine(name, cluster, id), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}

	initial := true

	stream, err := machines.Watch(t.Context(), metav1.ListOptions{
		FieldSelector:        "spec.clusterRef.name=production",
		SendInitialEvents:    &initial,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		AllowWatchBookmarks:  true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Stop()

	added := next(t, stream, watch.Added)
	if added.Name != "one" {
		t.Errorf("added %s", added.Name)
	}

	bookmark := next(t, stream, watch.Bookmark)
	if bookmark.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
		t.Errorf("bookmark %v", bookmark.Annotations)
	}

	if err := machines.Delete(t.Context(), "two", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	if err := machines.Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	if deleted := next(t, stream, watch.Deleted); deleted.Name != "one" {
		t.Errorf("deleted %s: the selector let another cluster's machine through", deleted.Name)
	}
}

func next(t *testing.T, stream watch.Interface, want watch.EventType) *v1alpha1.OmniMachine {
	t.Helper()

	event := await.Receive(t, "an event "+string(want), stream.ResultChan())
	if event.Type != want {
		t.Fatalf("event %q, want %s: %+v", event.Type, want, event.Object)
	}

	return event.Object.(*v1alpha1.OmniMachine)
}
