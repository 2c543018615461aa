package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// What clients read, of every kind, through the aggregator.

func TestEveryKindCanBeListed(t *testing.T) {
	forEachKind(t, func(t *testing.T, k subject, namespace string) {
		client := k.admin(t, namespace)

		for name, tier := range map[string]string{"a": "x", "b": "x", "c": "y"} {
			must(client.Create(t.Context(), k.labelled(t, name, "tier", tier), metav1.CreateOptions{}))(t)
		}

		before := must(client.List(t.Context(), metav1.ListOptions{}))(t).GetResourceVersion()
		must(client.Create(t.Context(), k.labelled(t, "d", "tier", "y"), metav1.CreateOptions{}))(t)
		now := must(client.List(t.Context(), metav1.ListOptions{}))(t).GetResourceVersion()

		checkLists(t, k, client, before, now)
		checkPages(t, client)
		checkUntyped(t, k, namespace)
	})
}

func checkLists(t *testing.T, k subject, client dynamic.ResourceInterface, before, now string) {
	t.Helper()

	tests := []struct {
		name    string
		options metav1.ListOptions
		want    []string
	}{
		{"all", metav1.ListOptions{}, []string{"a", "b", "c", "d"}},
		{"label", metav1.ListOptions{LabelSelector: "tier=x"}, []string{"a", "b"}},
		{"set of labels", metav1.ListOptions{LabelSelector: "tier notin (x),tier"}, []string{"c", "d"}},
		{"name", metav1.ListOptions{FieldSelector: "metadata.name=c"}, []string{"c"}},
		{"all but a name", metav1.ListOptions{FieldSelector: "metadata.name!=c", LabelSelector: "tier=y"}, []string{"d"}},
		{"not older", metav1.ListOptions{ResourceVersion: now, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}, []string{"a", "b", "c", "d"}},
		{"exactly then", metav1.ListOptions{ResourceVersion: before, ResourceVersionMatch: metav1.ResourceVersionMatchExact}, []string{"a", "b", "c"}},
		{"exactly then, by pages", metav1.ListOptions{ResourceVersion: before, ResourceVersionMatch: metav1.ResourceVersionMatchExact, Limit: 2}, []string{"a", "b"}},
	}

	if k.field != "" {
		tests = append(tests, []struct {
			name    string
			options metav1.ListOptions
			want    []string
		}{
			{"field", metav1.ListOptions{FieldSelector: k.field + "=" + k.of, LabelSelector: "tier=x"}, []string{"a", "b"}},
			{"another value", metav1.ListOptions{FieldSelector: k.field + "=other"}, nil},
			{"any other value", metav1.ListOptions{FieldSelector: k.field + "!=" + k.of}, nil},
		}...)
	}

	for _, tc := range tests {
		list, err := client.List(t.Context(), tc.options)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)

			continue
		}

		if diff := cmp.Diff(tc.want, namesOf(list)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}

	// Whatever the cache has: it may be behind, but it knows objects, and answers at once.
	if list, err := client.List(t.Context(), metav1.ListOptions{ResourceVersion: "0"}); err != nil || list.GetResourceVersion() == "" {
		t.Errorf("any version: %v", err)
	}

	if _, err := client.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nonsense=x"}); !apierrors.IsBadRequest(err) {
		t.Errorf("a field that is no selector: %v", err)
	}
}

func checkPages(t *testing.T, client dynamic.ResourceInterface) {
	t.Helper()

	first := must(client.List(t.Context(), metav1.ListOptions{Limit: 3}))(t)
	if left := first.GetRemainingItemCount(); len(first.Items) != 3 || left == nil || *left != 1 || first.GetContinue() == "" {
		t.Fatalf("first page: %v, remaining %v", namesOf(first), left)
	}

	second := must(client.List(t.Context(), metav1.ListOptions{Limit: 3, Continue: first.GetContinue()}))(t)
	if diff := cmp.Diff([]string{"d"}, namesOf(second)); diff != "" || second.GetContinue() != "" {
		t.Errorf("second page (-want +got):\n%s", diff)
	}

	if first.GetResourceVersion() != second.GetResourceVersion() {
		t.Errorf("the pages are of versions %s and %s", first.GetResourceVersion(), second.GetResourceVersion())
	}
}

// checkUntyped reads what the garbage collector and the namespace controller read: metadata alone.
func checkUntyped(t *testing.T, k subject, namespace string) {
	t.Helper()

	client, err := metadata.NewForConfig(stack.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}

	list, err := client.Resource(k.gvr()).Namespace(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "tier=x"})
	if err != nil || len(list.Items) != 2 || list.Items[0].UID == "" {
		t.Errorf("metadata: %+v %v", list, err)
	}
}

// A list that is streamed ends with a bookmark, and changes follow. A selector is obeyed on the way: what
// stops to match is gone.
func TestEveryKindCanBeWatched(t *testing.T) {
	forEachKind(t, func(t *testing.T, k subject, namespace string) {
		client := k.admin(t, namespace)
		must(client.Create(t.Context(), k.labelled(t, "in", "tier", "x"), metav1.CreateOptions{}))(t)
		must(client.Create(t.Context(), k.labelled(t, "out", "tier", "y"), metav1.CreateOptions{}))(t)

		yes := true
		selector := metav1.ListOptions{
			SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			AllowWatchBookmarks: true, LabelSelector: "tier=x",
		}

		if k.field != "" {
			selector.FieldSelector = k.field + "=" + k.of
		}

		stream := must(client.Watch(t.Context(), selector))(t)
		defer stream.Stop()

		expectEvent(t, stream, watch.Added, "in")

		if mark := nextEvent(t, stream, watch.Bookmark); mark.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
			t.Errorf("bookmark %v", mark.GetAnnotations())
		}

		label := func(name, tier string) {
			patch := []byte(`{"metadata":{"labels":{"tier":"` + tier + `"}}}`)
			must(client.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}))(t)
		}

		label("out", "x")
		expectEvent(t, stream, watch.Added, "out")
		label("in", "y")
		expectEvent(t, stream, watch.Deleted, "in")

		// A watch from a version tells what came after it.
		list := must(client.List(t.Context(), metav1.ListOptions{}))(t)
		later := must(client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), FieldSelector: "metadata.name=new"}))(t)
		defer later.Stop()

		must(client.Create(t.Context(), k.object(t, "new"), metav1.CreateOptions{}))(t)
		expectEvent(t, later, watch.Added, "new")
	})
}

// expectEvent waits for an event of the type about the object.
func expectEvent(t *testing.T, stream watch.Interface, want watch.EventType, name string) {
	t.Helper()

	if object := nextEvent(t, stream, want); object.GetName() != name {
		t.Fatalf("%s %s, want %s", want, object.GetName(), name)
	}
}

// nextEvent is the next event of the type. Modifications, which the controller makes, too, and bookmarks
// may come before it.
func nextEvent(t *testing.T, stream watch.Interface, want watch.EventType) *unstructured.Unstructured {
	t.Helper()

	timeout := time.After(eventually)

	for {
		select {
		case event, open := <-stream.ResultChan():
			object, ok := event.Object.(*unstructured.Unstructured)

			switch {
			case !open || !ok:
				t.Fatalf("event %+v (open %t), want %s", event, open, want)
			case event.Type == want:
				return object
			case event.Type != watch.Modified && event.Type != watch.Bookmark:
				t.Fatalf("event %s of %s, want %s", event.Type, object.GetName(), want)
			}
		case <-timeout:
			t.Fatalf("no %s event", want)
		}
	}
}

// A client that is ahead of the server's storage must not be answered with what is older.
func TestVersionOfTheFuture(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	client := subjects[0].admin(t, s.name)
	version := must(client.List(t.Context(), metav1.ListOptions{}))(t).GetResourceVersion() + "000"

	// The server waits three seconds for that version, and asks to try again.
	admin := must(rest.HTTPClientFor(stack.RESTConfig()))(t) // it does not try again by itself
	path := s.path(subjects[0].resource) + "?resourceVersionMatch=NotOlderThan&resourceVersion=" + version

	if status, body := s.send(admin, asked{method: http.MethodGet, path: path}); status != http.StatusGatewayTimeout || !strings.Contains(body, "Too large resource version") {
		t.Errorf("list: status %d: %s", status, body)
	}

	// A watch is told to list again, and ends: see docs/concepts/limits.md.
	stream := must(client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: version}))(t)
	defer stream.Stop()

	event := <-stream.ResultChan()
	if err := apierrors.FromObject(event.Object); event.Type != watch.Error || !apierrors.IsResourceExpired(err) || !strings.Contains(err.Error(), "is not reached yet") {
		t.Errorf("watch: event %+v", event)
	}

	if event, open := <-stream.ResultChan(); open {
		t.Errorf("the watch goes on with %+v", event)
	}
}

// One connection from kube-apiserver has room for 100 requests. Watches beyond that get another one, and nobody waits.
func TestMoreWatchesThanAConnectionCarries(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	client := subjects[0].admin(t, s.name)

	var streams []watch.Interface

	t.Cleanup(func() {
		for _, stream := range streams {
			stream.Stop()
		}
	})

	for range 250 {
		streams = append(streams, must(client.Watch(t.Context(), metav1.ListOptions{}))(t))
	}

	must(client.Create(t.Context(), subjects[0].object(t, "x"), metav1.CreateOptions{}))(t)

	for _, stream := range streams {
		expectEvent(t, stream, watch.Added, "x")
	}
}
