package omnihelmrelease

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
)

// TestOtherClaimantsAreWoken: an object that waits for a release is looked at as soon as the owner of the release is gone.
func TestOtherClaimantsAreWoken(t *testing.T) {
	claiming := func(name string, change func(*v1alpha1.OmniHelmRelease)) *v1alpha1.OmniHelmRelease {
		release := newTestRelease(v1alpha1.HelmChart{})
		release.Name, release.Spec.ReleaseName = name, "app"
		change(release)

		return release
	}
	gone := claiming("old", func(*v1alpha1.OmniHelmRelease) {})

	known := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(known); err != nil {
		t.Fatal(err)
	}

	builder := fake.NewClientBuilder().WithScheme(known).WithObjects(
		claiming("new", func(*v1alpha1.OmniHelmRelease) {}),
		claiming("another-release", func(r *v1alpha1.OmniHelmRelease) { r.Spec.ReleaseName = "other" }),
		claiming("another-place", func(r *v1alpha1.OmniHelmRelease) { r.Spec.Namespace = "elsewhere" }),
		claiming("another-cluster", func(r *v1alpha1.OmniHelmRelease) { r.Spec.ClusterRef.Name = "elsewhere" }),
		claiming("another-team", func(r *v1alpha1.OmniHelmRelease) { r.Namespace = "elsewhere" }),
	)
	for _, i := range index.All() {
		builder = builder.WithIndex(i.Object, i.Name, i.Values)
	}

	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()

	handler := (&reconciler{client: builder.Build()}).enqueueOtherClaimants()
	handler.Update(t.Context(), event.UpdateEvent{ObjectOld: gone, ObjectNew: gone}, q)

	if q.Len() > 0 {
		t.Error("a change that frees nothing wakes others")
	}

	handler.Delete(t.Context(), event.DeleteEvent{Object: gone}, q)

	if q.Len() != 1 {
		t.Fatalf("%d objects are woken, want 1", q.Len())
	}

	if request, _ := q.Get(); request.Name != "new" || request.Namespace != gone.Namespace {
		t.Errorf("woken: %s", request)
	}
}
