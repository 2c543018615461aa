package loop

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func TestOnlyDeletions(t *testing.T) {
	p := OnlyDeletions()

	if !p.Delete(event.DeleteEvent{}) || p.Create(event.CreateEvent{}) || p.Update(event.UpdateEvent{}) || p.Generic(event.GenericEvent{}) {
		t.Error("not only deletions are accepted")
	}
}

// TestHolds: in a namespace that is not served, nobody knows what holds a Secret.
func TestHolds(t *testing.T) {
	for _, test := range []struct {
		served, finalizer string
		want              bool
	}{
		{"team", "ours", true},
		{"", "ours", true},
		{"other", "ours", false},
		{"team", "theirs", false},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Finalizers: []string{test.finalizer}}}
		if got := Holds(test.served, "ours").Create(event.CreateEvent{Object: secret}); got != test.want {
			t.Errorf("%+v: got %t", test, got)
		}
	}
}

func TestStatusEcho(t *testing.T) {
	for name, test := range map[string]struct {
		change      func(*v1alpha1.OmniConnection)
		now, echoed bool
	}{
		"nothing":         {func(o *v1alpha1.OmniConnection) { o.ResourceVersion = "1" }, false, false},
		"the status":      {func(o *v1alpha1.OmniConnection) { o.Status.LastHandledReconcileAt = "x" }, false, true},
		"managed fields":  {func(o *v1alpha1.OmniConnection) { o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}} }, false, true},
		"the spec":        {func(o *v1alpha1.OmniConnection) { o.Generation++ }, true, false},
		"a label":         {func(o *v1alpha1.OmniConnection) { o.Labels = map[string]string{"a": "b"} }, true, false},
		"an annotation":   {func(o *v1alpha1.OmniConnection) { o.Annotations = map[string]string{"a": "b"} }, true, false},
		"a finalizer":     {func(o *v1alpha1.OmniConnection) { o.Finalizers = []string{"a"} }, true, false},
		"a deletion":      {func(o *v1alpha1.OmniConnection) { o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, true, false},
		"another object":  {func(o *v1alpha1.OmniConnection) { o.UID = "other" }, true, false},
		"both of the two": {func(o *v1alpha1.OmniConnection) { o.Generation++; o.Status.LastHandledReconcileAt = "x" }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := changing()
			before.ResourceVersion = "1"
			after := before.DeepCopy()
			after.ResourceVersion = "2"
			test.change(after)

			for _, p := range []struct {
				predicate.Predicate
				want bool
			}{{moreThanStatus(), test.now}, {statusOnly(), test.echoed}} {
				if got := p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != p.want {
					t.Errorf("got %v, want %v", got, p.want)
				}
			}
		})
	}

	if p := moreThanStatus(); !p.Create(event.CreateEvent{}) || !p.Delete(event.DeleteEvent{}) {
		t.Error("objects come and go unseen")
	}

	if p := statusOnly(); p.Create(event.CreateEvent{}) || p.Delete(event.DeleteEvent{}) || p.Generic(event.GenericEvent{}) {
		t.Error("objects that come and go are seen twice")
	}
}

func TestAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer queue.ShutDown()

		started := time.Now()
		after(50*time.Millisecond).Update(t.Context(), event.UpdateEvent{ObjectOld: changing(), ObjectNew: changing()}, queue)

		if got, _ := queue.Get(); got != (reconcile.Request{NamespacedName: client.ObjectKeyFromObject(changing())}) {
			t.Errorf("got %v", got)
		}

		if took := time.Since(started); took != 50*time.Millisecond {
			t.Errorf("after %s", took)
		}
	})
}

func changing() *v1alpha1.OmniConnection {
	return &v1alpha1.OmniConnection{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "omni", UID: "one", Generation: 1}}
}
