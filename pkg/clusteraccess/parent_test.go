package clusteraccess

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// TestParentChanged checks that the objects of a cluster are reconciled at once when a change affects their access, and
// not for each status update of Omni.
func TestParentChanged(t *testing.T) {
	parent := func(generation int64, id, phase string, deleted bool) *v1alpha1.OmniCluster {
		o := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Name: "demo", Generation: generation}}
		o.Status.OmniClusterID, o.Status.Omni = id, &v1alpha1.OmniClusterRemoteStatus{Phase: phase}

		if deleted {
			o.DeletionTimestamp = &metav1.Time{}
			o.DeletionTimestamp.Time = o.DeletionTimestamp.AddDate(2000, 0, 0)
		}

		return o
	}

	others := parent(1, "id", "Running", false)
	others.Status.OtherHub = "hub-2"

	restored, seen := parent(1, "id", "Running", false), parent(1, "id", "Running", false)
	restored.Status.HubID, seen.Status.HubID = "hub-2", "hub-1"

	for name, test := range map[string]struct {
		before, after *v1alpha1.OmniCluster
		want          bool
	}{
		"the ID appears":         {parent(1, "", "ScalingUp", false), parent(1, "id", "ScalingUp", false), true},
		"another phase":          {parent(1, "id", "ScalingUp", false), parent(1, "id", "Running", false), false},
		"the spec":               {parent(1, "id", "Running", false), parent(2, "id", "Running", false), true},
		"a deletion begins":      {parent(1, "id", "Running", false), parent(2, "id", "Running", true), true},
		"the teardown begins":    {parent(2, "id", "Running", true), parent(2, "id", "Destroying", true), true},
		"the teardown goes on":   {parent(2, "id", "Destroying", true), parent(2, "id", "Destroying", true), false},
		"it is another hub's":    {parent(1, "id", "Running", false), others, true},
		"it is taken over":       {others, parent(1, "id", "Running", false), true},
		"this hub has seen it":   {restored, seen, true},
		"first seen by any hub":  {parent(1, "id", "Running", false), seen, false},
		"a teardown of somebody": {parent(1, "id", "Running", false), parent(1, "id", "Destroying", false), false},
	} {
		if got := ParentChanged().Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
