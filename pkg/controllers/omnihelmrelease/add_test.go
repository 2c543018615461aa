package omnihelmrelease

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop/looptest"
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

	api := looptest.NewAPI(
		claiming("new", func(*v1alpha1.OmniHelmRelease) {}),
		claiming("another-release", func(r *v1alpha1.OmniHelmRelease) { r.Spec.ReleaseName = "other" }),
		claiming("another-place", func(r *v1alpha1.OmniHelmRelease) { r.Spec.Namespace = "elsewhere" }),
		claiming("another-cluster", func(r *v1alpha1.OmniHelmRelease) { r.Spec.ClusterRef.Name = "elsewhere" }),
		claiming("another-team", func(r *v1alpha1.OmniHelmRelease) { r.Namespace = "elsewhere" }),
	).Build()

	want := []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: gone.Namespace, Name: "new"}}}
	if diff := cmp.Diff(want, (&reconciler{client: api}).otherClaimants(t.Context(), gone)); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
}
