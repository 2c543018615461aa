package omnihelmrelease

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop/looptest"
)

// The owner of a release is found without a look at all others.
func TestTheOwnerIsLookedForByItsUID(t *testing.T) {
	owner, other := newTestRelease(v1alpha1.HelmChart{}), newTestRelease(v1alpha1.HelmChart{})
	owner.Namespace, owner.UID, other.Name = "team", "uid-of-owner", "other"

	r := &reconciler{client: looptest.NewAPI(owner, other).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := c.List(ctx, list, options...); err != nil {
				return err
			}

			if got := apimeta.LenList(list); got > 1 {
				t.Errorf("%d objects were listed", got)
			}

			return nil
		},
	}).Build()}

	for uid, want := range map[string]string{"uid-of-owner": "team/" + owner.Name, "gone": ""} {
		if got, err := r.ownerName(t.Context(), uid); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", uid, got, err, want)
		}
	}
}

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
