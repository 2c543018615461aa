package hubs_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/trigger"
)

// monday is when the cluster began to run well.
var monday = time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)

func newCluster(uid types.UID, since *metav1.Time) *v1alpha1.OmniCluster {
	return &v1alpha1.OmniCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "c1", UID: uid},
		Status:     v1alpha1.OmniClusterStatus{Rollout: &v1alpha1.OmniClusterRollout{WellSince: since}},
	}
}

// TestConfirms has a status that says that a cluster runs well since Monday.
func TestConfirms(t *testing.T) {
	since, later := metav1.NewTime(monday), metav1.NewTime(monday.Add(time.Hour))

	for name, test := range map[string]struct {
		saw  *v1alpha1.OmniCluster // nil: the process has seen nothing
		want bool
	}{
		"nothing was seen yet":        {},
		"it does":                     {saw: newCluster("u", &since), want: true},
		"it does not":                 {saw: newCluster("u", nil)},
		"it does, but only since":     {saw: newCluster("u", &later)},
		"it is another object's name": {saw: newCluster("other", &since)},
		"no policy selected it":       {saw: &v1alpha1.OmniCluster{ObjectMeta: newCluster("u", nil).ObjectMeta}},
	} {
		t.Run(name, func(t *testing.T) {
			known := hubs.NewWell(trigger.Pacing{})
			if test.saw != nil {
				known.Note(test.saw)
			}

			status := newCluster("u", &since)
			if got := known.Confirms(status); got != test.want {
				t.Errorf("%t, want %t", got, test.want)
			}

			known.Forget(client.ObjectKeyFromObject(status))

			if known.Confirms(status) {
				t.Error("a deleted object is remembered")
			}
		})
	}

	// The process sees that it does not run well.
	known, status := hubs.NewWell(trigger.Pacing{}), newCluster("u", nil)
	known.Note(status)

	if !known.Confirms(status) {
		t.Error("a status that says so is not confirmed")
	}

	// Another process wrote it.
	status.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	if known.Confirms(status) {
		t.Error("a status that says that it is Ready is confirmed")
	}

	status.Status.Rollout = nil
	if known.Confirms(status) {
		t.Error("a status from before a policy selected it is confirmed")
	}
}

// TestNobodyWaits: without rollouts there is nobody to take notes for.
func TestNobodyWaits(*testing.T) {
	var none *hubs.Well

	none.Note(newCluster("u", nil))
	none.Forget(types.NamespacedName{Namespace: "fleet", Name: "c1"})
}

// TestFirstLookWakes: the first look at a cluster wakes who waits for it, and another one only if it is another object's.
func TestFirstLookWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := hubs.NewWell(trigger.Pacing{})

		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer q.ShutDown()

		if err := known.Source(func(_ context.Context, namespace string) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "production"}}}
		}).Start(t.Context(), q); err != nil {
			t.Fatal(err)
		}

		for i, step := range []struct {
			uid  types.UID
			want int
		}{{"u", 1}, {"u", 0}, {"another", 1}} {
			since := metav1.NewTime(monday)
			known.Note(newCluster(step.uid, &since))
			time.Sleep(time.Second)
			synctest.Wait()

			if got := q.Len(); got != step.want {
				t.Errorf("step %d: %d woken, want %d", i, got, step.want)
			}

			for q.Len() > 0 {
				request, _ := q.Get()
				q.Done(request)

				if request.String() != "fleet/production" {
					t.Errorf("woken: %s", request)
				}
			}
		}
	})
}
