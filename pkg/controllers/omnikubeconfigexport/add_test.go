package omnikubeconfigexport

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// What a connection can change for an export wakes it; the rest of a connection's status does not.
func TestConnectionChanged(t *testing.T) {
	later := metav1.NewTime(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))

	for name, test := range map[string]struct {
		change func(*v1alpha1.OmniConnection)
		want   bool
	}{
		"nothing":         {func(*v1alpha1.OmniConnection) {}, false},
		"observed":        {func(c *v1alpha1.OmniConnection) { c.Status.ObservedGeneration = 9 }, false},
		"another spec":    {func(c *v1alpha1.OmniConnection) { c.Generation = 2 }, true},
		"made again":      {func(c *v1alpha1.OmniConnection) { c.UID = "b" }, true},
		"another account": {func(c *v1alpha1.OmniConnection) { c.Status.ServiceAccount.Name = "strong" }, true},
		"a previous hub": {func(c *v1alpha1.OmniConnection) {
			c.Annotations = map[string]string{v1alpha1.AnnotationPreviousHub: "gone"}
		}, true},
		"another key of it":   {func(c *v1alpha1.OmniConnection) { c.Status.ServiceAccount.ExpirationTime = &later }, true},
		"Ready for the first": {func(c *v1alpha1.OmniConnection) { c.Status.Conditions = ready() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := &v1alpha1.OmniConnection{ObjectMeta: metav1.ObjectMeta{UID: "a", Generation: 1}}
			before.Status.ServiceAccount = &v1alpha1.OmniServiceAccountStatus{Name: "weak"}

			after := before.DeepCopy()
			test.change(after)

			if got := connectionChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// What a cluster can change for an export wakes it: a cluster that owned nothing in Omni may own it now. Its status
// changes all the time.
func TestClusterChanged(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1alpha1.OmniCluster)
		want   bool
	}{
		"nothing":           {func(*v1alpha1.OmniCluster) {}, false},
		"it runs":           {func(c *v1alpha1.OmniCluster) { c.Status.Conditions = append(c.Status.Conditions, ready()...) }, false},
		"another spec":      {func(c *v1alpha1.OmniCluster) { c.Generation = 2 }, true},
		"made again":        {func(c *v1alpha1.OmniCluster) { c.UID = "b" }, true},
		"another ID":        {func(c *v1alpha1.OmniCluster) { c.Status.OmniClusterID = "0b7c" }, true},
		"no longer Stalled": {func(c *v1alpha1.OmniCluster) { c.Status.Conditions = nil }, true},
		"another in its place": {func(c *v1alpha1.OmniCluster) {
			c.Status.Conditions[0].Reason = v1alpha1.ReasonRemoteClusterReplaced
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{UID: "a", Generation: 1}}
			before.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNotOwned}}

			after := before.DeepCopy()
			test.change(after)

			if got := clusterChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func ready() []metav1.Condition {
	return []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
}
