package clusteraccess

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/trigger"
)

// TestLimiterOfACluster: a bounded number of reconciles works in one cluster; the next ones are postponed, and woken
// when one ends.
func TestLimiterOfACluster(t *testing.T) {
	l := newCleanupFixture(t, &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}})
	l.access.Clusters.Runs = 1
	woken := make(chan types.NamespacedName, 1)
	l.requester.Wake = listening(t, woken)

	first, _, err := l.plan()
	if err != nil || first.Action != ActionCleanUp {
		t.Fatal(first, err)
	}

	opened, outcome, err := l.access.Open(t.Context(), l.requester)
	if opened != nil || !outcome.Postpones() || err != nil {
		t.Fatal(opened, outcome, err)
	}

	// Even after its hour, a deletion only waits for a slot.
	second, outcome, err := l.access.PlanCleanup(t.Context(), l.requester, l.clock.Add(2*longestCleanup))
	if second.Action != ActionWait || !outcome.Postpones() || err != nil {
		t.Fatal(second, outcome, err)
	}

	first.Opened.Done()
	first.Opened.Done()

	if got := <-woken; got.Name != "pull" {
		t.Errorf("%s was woken", got)
	}

	if opened, _, err = l.access.Open(t.Context(), l.requester); opened == nil || err != nil {
		t.Fatal("no slot", err)
	}

	opened.Done()
}

// listening returns a trigger that sends what it fires for to a channel.
func listening(t *testing.T, woken chan<- types.NamespacedName) *trigger.Trigger[types.NamespacedName] {
	t.Helper()

	wake := trigger.New[types.NamespacedName](trigger.Pacing{})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)

	err := wake.Source(func(_ context.Context, name types.NamespacedName) []reconcile.Request {
		woken <- name

		return nil
	}).Start(t.Context(), queue)
	if err != nil {
		t.Fatal(err)
	}

	return wake
}
