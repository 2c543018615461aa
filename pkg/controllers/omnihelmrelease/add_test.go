package omnihelmrelease

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/looptest"
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

// Dependents are looked at when what they wait for may have changed, not after each status that a release writes.
func TestWhatConcernsDependents(t *testing.T) {
	ready := newTestRelease(v1alpha1.HelmChart{})
	ready.Generation, ready.Status.ObservedGeneration = 2, 2
	ready.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: yes}}

	for name, test := range map[string]struct {
		change func(*v1alpha1.OmniHelmRelease)
		want   bool
	}{
		"a status":      {func(r *v1alpha1.OmniHelmRelease) { r.Status.Failures++ }, false},
		"not Ready":     {func(r *v1alpha1.OmniHelmRelease) { r.Status.Conditions[0].Status = no }, true},
		"edited":        {func(r *v1alpha1.OmniHelmRelease) { r.Generation++ }, true},
		"being deleted": {func(r *v1alpha1.OmniHelmRelease) { r.DeletionTimestamp = new(metav1.Now()) }, true},
		"made anew":     {func(r *v1alpha1.OmniHelmRelease) { r.UID = "another" }, true},
		"in a cycle": {func(r *v1alpha1.OmniHelmRelease) {
			r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionStalled, Status: yes, Reason: v1alpha1.ReasonDependencyCycle})
		}, true},
		"stalled otherwise": {func(r *v1alpha1.OmniHelmRelease) {
			r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionStalled, Status: yes, Reason: v1alpha1.ReasonActionFailed})
		}, false},
		"waits for others": {func(r *v1alpha1.OmniHelmRelease) { r.Spec.DependsOn = []v1alpha1.LocalObjectReference{{Name: "x"}} }, true},
	} {
		changed := ready.DeepCopy()
		test.change(changed)

		for _, e := range []event.UpdateEvent{{ObjectOld: ready, ObjectNew: changed}, {ObjectOld: changed, ObjectNew: ready}} {
			if got := concernsDependents().Update(e); got != test.want {
				t.Errorf("%s: %t, want %t", name, got, test.want)
			}
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
