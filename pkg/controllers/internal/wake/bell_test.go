package wake

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: name}}
}

func newQueue(t *testing.T) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	t.Helper()

	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)

	return queue
}

func TestBellWakes(t *testing.T) {
	bell := NewBell[string](0)
	queue := newQueue(t)

	bell.Ring("before the start")

	start := bell.Source(func(_ context.Context, key string) []reconcile.Request {
		return []reconcile.Request{request(key + " 1"), request(key + " 2")}
	})
	if err := start.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}

	for _, want := range []string{"before the start 1", "before the start 2"} {
		if got, _ := queue.Get(); got != request(want) {
			t.Errorf("%v, want %q", got, want)
		}
	}

	bell.Ring("later")

	if got, _ := queue.Get(); got != request("later 1") {
		t.Error(got)
	}
}

func TestBellGathers(t *testing.T) {
	bell := NewBell[string](50 * time.Millisecond)
	queue := newQueue(t)

	start := bell.Source(func(context.Context, string) []reconcile.Request { return []reconcile.Request{request("demo")} })
	if err := start.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}

	for range 1000 {
		bell.Ring("demo")
	}

	if got, _ := queue.Get(); got != request("demo") {
		t.Error(got)
	}

	queue.Done(request("demo"))

	if left := queue.Len(); left != 0 {
		t.Errorf("%d requests more", left)
	}
}

// Callbacks may come until the very end of the process.
func TestBellAfterTheEnd(t *testing.T) {
	bell := NewBell[string](0)
	ctx, stop := context.WithCancel(t.Context())

	if err := bell.Source(func(context.Context, string) []reconcile.Request { return nil }).Start(ctx, newQueue(t)); err != nil {
		t.Fatal(err)
	}

	stop()

	for range 1000 {
		bell.Ring("demo")
	}
}
