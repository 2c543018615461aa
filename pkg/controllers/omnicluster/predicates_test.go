package omnicluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

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
