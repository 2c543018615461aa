package clusteraccess

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/looptest"
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

// The other hub that an object remembers keeps this hub's hands off the cluster when the OmniCluster is gone.
func TestOtherHub(t *testing.T) {
	for name, test := range map[string]struct {
		noParent        bool
		other, lookedAt string // status of the OmniCluster
		known           string // of the object
		want            string
	}{
		"no OmniCluster":                           {noParent: true},
		"no OmniCluster, known before":             {noParent: true, known: "hub-2", want: "hub-2"},
		"this hub's":                               {lookedAt: "hub-1"},
		"this hub's again":                         {lookedAt: "hub-1", known: "hub-2"},
		"another hub's":                            {lookedAt: "hub-1", other: "hub-2", want: "hub-2"},
		"another hub's, seen by another":           {lookedAt: "hub-3", other: "hub-2", want: "hub-2"},
		"only another hub has seen it":             {lookedAt: "hub-2", want: "hub-2"},
		"only another hub has seen it, known else": {lookedAt: "hub-2", known: "hub-3", want: "hub-2"},
		"nobody has seen it":                       {},
		"nobody has seen it, known before":         {known: "hub-2", want: "hub-2"},
	} {
		t.Run(name, func(t *testing.T) {
			builder := looptest.NewAPI()

			if !test.noParent {
				parent := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
				parent.Status.OtherHub, parent.Status.HubID = test.other, test.lookedAt
				builder.WithObjects(parent)
			}

			release := &v1alpha1.OmniHelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "app"}}
			release.Spec.ClusterRef.Name, release.Status.OtherHub = "demo", test.known

			if got := OtherHub(t.Context(), builder.Build(), "hub-1", RequesterOf(release, nil)); got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

// Work in a cluster ends when that is destroyed with its OmniCluster, and not before.
func TestDestroying(t *testing.T) {
	for name, test := range map[string]struct {
		noParent, deleted bool
		phase             string
		want              bool
	}{
		"no OmniCluster":             {noParent: true},
		"it lives":                   {phase: "Running"},
		"its deletion waits":         {deleted: true, phase: "Running"},
		"somebody tears it down":     {phase: v1alpha1.ClusterPhaseDestroying},
		"it is being destroyed":      {deleted: true, phase: v1alpha1.ClusterPhaseDestroying, want: true},
		"nothing is known of it yet": {deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			builder := looptest.NewAPI()

			if !test.noParent {
				parent := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}

				if test.phase != "" {
					parent.Status.Omni = &v1alpha1.OmniClusterRemoteStatus{Phase: test.phase}
				}

				if test.deleted {
					parent.DeletionTimestamp, parent.Finalizers = new(metav1.Now()), []string{v1alpha1.Finalizer}
				}

				builder.WithObjects(parent)
			}

			release := &v1alpha1.OmniHelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "app"}}
			release.Spec.ClusterRef.Name = "demo"

			got, err := (&Access{Client: builder.Build()}).Destroying(t.Context(), RequesterOf(release, nil))
			if err != nil || got != test.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}
