package hubs_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/trigger"
)

// ofHub is the cluster with the other hub that has it; empty: none has.
func ofHub(uid types.UID, other string) *v1alpha1.OmniCluster {
	cluster := newCluster(uid, nil)
	cluster.Status.OtherHub = other

	return cluster
}

// TestOwners: a cluster is confirmed from a note that no other hub has it until the note is taken back.
func TestOwners(t *testing.T) {
	cluster := ofHub("u", "")
	name := client.ObjectKeyFromObject(cluster)

	for what, test := range map[string]struct {
		do   func(*hubs.Owners)
		want bool
	}{
		"nothing was seen yet":     {func(*hubs.Owners) {}, false},
		"it is no other hub's":     {func(o *hubs.Owners) { o.Note(cluster) }, true},
		"it is another hub's":      {func(o *hubs.Owners) { o.Note(ofHub("u", "hub-2")) }, false},
		"it became another hub's":  {func(o *hubs.Owners) { o.Note(cluster); o.Note(ofHub("u", "hub-2")) }, false},
		"Omni is not seen anymore": {func(o *hubs.Owners) { o.Note(cluster); o.Lost(name) }, false},
		"it is another object":     {func(o *hubs.Owners) { o.Note(ofHub("before", "")) }, false},
		"the object is gone":       {func(o *hubs.Owners) { o.Note(cluster); o.Forget(name) }, false},
	} {
		owners := hubs.NewOwners()
		test.do(owners)

		if got := owners.Confirms(cluster, hubs.Waiter{}); got != test.want {
			t.Errorf("%s: %t, want %t", what, got, test.want)
		}
	}
}

// TestNoOwners: without them nothing is seen.
func TestNoOwners(t *testing.T) {
	var none *hubs.Owners

	none.Note(ofHub("u", ""))
	none.Lost(types.NamespacedName{})
	none.Forget(types.NamespacedName{})

	if none.Confirms(ofHub("u", ""), hubs.Waiter{}) {
		t.Error("nothing was seen, and it is confirmed")
	}
}

// TestWhoWaitsIsWokenOnce: by the note that no other hub has the cluster, and by no other one.
func TestWhoWaitsIsWokenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := trigger.New[types.NamespacedName](trigger.Pacing{})

		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer q.ShutDown()

		if err := wake.Source(func(_ context.Context, name types.NamespacedName) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: name}}
		}).Start(t.Context(), q); err != nil {
			t.Fatal(err)
		}

		owners, cluster := hubs.NewOwners(), ofHub("u", "")
		name := client.ObjectKeyFromObject(cluster)
		ask := func(object string) {
			owners.Confirms(cluster, hubs.Waiter{Object: types.NamespacedName{Namespace: "fleet", Name: object}, Wake: wake})
		}

		for i, step := range []struct {
			do   func()
			want int
		}{
			{func() { ask("app"); ask("app"); ask("base") }, 0},
			{func() { owners.Lost(name) }, 0},
			{func() { owners.Note(ofHub("u", "hub-2")) }, 0},
			{func() { owners.Note(cluster) }, 2},
			{func() { owners.Note(cluster) }, 0},
			{func() { owners.Lost(name); ask("app"); owners.Forget(name); owners.Note(cluster) }, 0},
		} {
			step.do()
			time.Sleep(time.Second)
			synctest.Wait()

			if got := q.Len(); got != step.want {
				t.Errorf("step %d: %d woken, want %d", i, got, step.want)
			}

			for q.Len() > 0 {
				request, _ := q.Get()
				q.Done(request)
			}
		}
	})
}
