package omnisecretsync

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/looptest"
)

// syncAt wants its Secret at apps/<wanted>, and has it at apps/<written>, with older ones at apps/<pending>.
func syncAt(name, wanted, written string, pending ...string) *v1alpha1.OmniSecretSync {
	sync := &v1alpha1.OmniSecretSync{}
	sync.Namespace, sync.Name, sync.Spec.ClusterRef.Name = "fleet", name, "c"
	sync.Spec.TargetSecretRef = v1alpha1.NamespacedSecretReference{Namespace: "apps", Name: wanted}

	if written != "" {
		sync.Status.Target = &v1alpha1.SyncedSecret{Namespace: "apps", Name: written, Hash: "h"}
	}

	for _, at := range pending {
		sync.Status.PendingTargets = append(sync.Status.PendingTargets, v1alpha1.SyncedSecret{Namespace: "apps", Name: at})
	}

	return sync
}

// TestOtherClaimantsAreWoken: an object that waits for a place in the workload cluster, or lost its copy to another one,
// is looked at as soon as the other one has left that place.
func TestOtherClaimantsAreWoken(t *testing.T) {
	elsewhere := syncAt("another-cluster", "pull", "")
	elsewhere.Spec.ClusterRef.Name = "d"

	api := looptest.NewAPI(syncAt("a", "pull", ""), syncAt("b", "push", ""), elsewhere).Build()
	handler := (&reconciler{client: api}).enqueueOtherClaimants()
	update := func(before, after *v1alpha1.OmniSecretSync) func(queue) {
		return func(q queue) { handler.Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q) }
	}
	deleted := func(sync *v1alpha1.OmniSecretSync) func(queue) {
		return func(q queue) { handler.Delete(t.Context(), event.DeleteEvent{Object: sync}, q) }
	}

	for name, test := range map[string]struct {
		wake func(queue)
		want string
	}{
		"deleted":                       {deleted(syncAt("old", "pull", "pull")), "a"},
		"deleted, its status is empty":  {deleted(syncAt("old", "pull", "")), "a"},
		"deleted, with an older copy":   {deleted(syncAt("old", "pull", "pull", "push")), "a b"},
		"deleted, was elsewhere":        {deleted(syncAt("old", "other", "other")), ""},
		"the target moves, not yet":     {update(syncAt("old", "pull", "pull"), syncAt("old", "other", "pull")), ""},
		"the target moves, old copy is": {update(syncAt("old", "other", "pull"), syncAt("old", "other", "other", "pull")), ""},
		"the target has moved":          {update(syncAt("old", "other", "other", "pull"), syncAt("old", "other", "other")), "a"},
		"nothing moves":                 {update(syncAt("old", "pull", "pull"), syncAt("old", "pull", "pull")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()

			test.wake(q)

			var woken []string

			for q.Len() > 0 {
				request, _ := q.Get()
				woken = append(woken, request.Name)
			}

			slices.Sort(woken)

			if got := strings.Join(woken, " "); got != test.want {
				t.Errorf("woken: %q, want %q", got, test.want)
			}
		})
	}
}
