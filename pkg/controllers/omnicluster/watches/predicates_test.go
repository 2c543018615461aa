package watches

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func TestPredicates(t *testing.T) {
	for name, test := range map[string]struct {
		change      func(*v1alpha1.OmniCluster)
		now, echoed bool
	}{
		"nothing":         {func(o *v1alpha1.OmniCluster) { o.ResourceVersion = "1" }, false, false},
		"the status":      {func(o *v1alpha1.OmniCluster) { o.Status.TemplateHash = "x" }, false, true},
		"managed fields":  {func(o *v1alpha1.OmniCluster) { o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}} }, false, true},
		"the spec":        {func(o *v1alpha1.OmniCluster) { o.Generation++ }, true, false},
		"a label":         {func(o *v1alpha1.OmniCluster) { o.Labels = map[string]string{"a": "b"} }, true, false},
		"an annotation":   {func(o *v1alpha1.OmniCluster) { o.Annotations = map[string]string{"a": "b"} }, true, false},
		"a finalizer":     {func(o *v1alpha1.OmniCluster) { o.Finalizers = []string{"a"} }, true, false},
		"a deletion":      {func(o *v1alpha1.OmniCluster) { o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, true, false},
		"another object":  {func(o *v1alpha1.OmniCluster) { o.UID = "other" }, true, false},
		"both of the two": {func(o *v1alpha1.OmniCluster) { o.Generation++; o.Status.TemplateHash = "x" }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := newCluster()
			before.ResourceVersion = "1"
			after := before.DeepCopy()
			after.ResourceVersion = "2"
			test.change(after)

			for _, p := range []struct {
				predicate.Predicate
				want bool
			}{{MoreThanStatus(), test.now}, {StatusOnly(), test.echoed}} {
				if got := p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != p.want {
					t.Errorf("got %v, want %v", got, p.want)
				}
			}
		})
	}

	if p := MoreThanStatus(); !p.Create(event.CreateEvent{}) || !p.Delete(event.DeleteEvent{}) {
		t.Error("objects come and go unseen")
	}

	if p := StatusOnly(); p.Create(event.CreateEvent{}) || p.Delete(event.DeleteEvent{}) || p.Generic(event.GenericEvent{}) {
		t.Error("objects that come and go are seen twice")
	}
}

func TestLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer queue.ShutDown()

		started := time.Now()
		later(50*time.Millisecond).Update(t.Context(), event.UpdateEvent{ObjectOld: newCluster(), ObjectNew: newCluster()}, queue)

		if got, _ := queue.Get(); got != request(testNamespace, testCluster) {
			t.Errorf("got %v", got)
		}

		if took := time.Since(started); took != 50*time.Millisecond {
			t.Errorf("after %s", took)
		}
	})
}

// TestConnectionChanged: clusters are not woken by each message of a connection that is away, or that is being deleted with them.
func TestConnectionChanged(t *testing.T) {
	before := &v1alpha1.OmniConnection{ObjectMeta: metav1.ObjectMeta{Name: "omni", UID: "a", Generation: 1}}
	before.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Unreachable", Message: "as before"}}

	for name, test := range map[string]struct {
		change func(*v1alpha1.OmniConnection)
		want   bool
	}{
		"another message": {func(o *v1alpha1.OmniConnection) { o.Status.Conditions[0].Message = "dialled again" }, false},
		"another time":    {func(o *v1alpha1.OmniConnection) { o.Status.LastHandledReconcileAt = "now" }, false},
		"another reason":  {func(o *v1alpha1.OmniConnection) { o.Status.Conditions[0].Reason = "Unauthenticated" }, true},
		"Ready":           {func(o *v1alpha1.OmniConnection) { o.Status.Conditions[0].Status = metav1.ConditionTrue }, true},
		"the spec":        {func(o *v1alpha1.OmniConnection) { o.Generation = 2 }, true},
		"made anew":       {func(o *v1alpha1.OmniConnection) { o.UID = "b" }, true},
		"a previous hub": {func(o *v1alpha1.OmniConnection) {
			o.Annotations = map[string]string{v1alpha1.AnnotationPreviousHub: "gone"}
		}, true},
		"another annotation":   {func(o *v1alpha1.OmniConnection) { o.Annotations = map[string]string{"a": "b"} }, false},
		"nothing, as a resync": {func(*v1alpha1.OmniConnection) {}, false},
	} {
		after := before.DeepCopy()
		test.change(after)

		if got := ConnectionChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
