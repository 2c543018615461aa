package omnikubeconfigexport

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// An Omni that hangs takes its share of the workers: another export of its OmniConnection frees its worker at once, and
// is reconciled when the first has ended.
func TestAnOmniThatHangsLeavesWorkers(t *testing.T) {
	f := newFixture(t)

	second := newExport("second")
	second.Spec.TargetSecretRef.Name = "second"
	f.must(f.client.Create(t.Context(), second))

	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	f.must(f.reconciler.wake.Source(func(_ context.Context, name types.NamespacedName) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: name}}
	}).Start(t.Context(), queue))

	hangs, ended := make(chan struct{}, 2), make(chan error, 1)
	remove := f.omni.Inject(omnisim.Fault{Method: "Kubeconfig", Hang: true, OnHit: func() { hangs <- struct{}{} }})

	go func() {
		_, err := f.loop.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "automation"}})
		ended <- err
	}()

	<-hangs

	f.export = "second"
	if result := f.run(); result.RequeueAfter <= 0 || result.RequeueAfter > limiter.WakePause || len(hangs) > 0 {
		t.Errorf("the second: %+v, it asked Omni: %t", result, len(hangs) > 0)
	}

	remove()
	f.must(<-ended)

	woken := make(chan reconcile.Request, 1)

	go func() {
		request, _ := queue.Get()
		woken <- request
	}()

	if request := await.Receive(t, "the second is woken", woken); request.Name != "second" {
		t.Errorf("woken: %v", request)
	}

	f.ready()
}
