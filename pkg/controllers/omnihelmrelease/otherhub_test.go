package omnihelmrelease

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
)

// A release that is left on a former hub, suspended as its OmniCluster was taken over, is deleted after its OmniCluster. The other
// hub has not rewritten the mark, and needs what runs.
func TestSuspendedReleaseInAClusterOfAnotherHubStays(t *testing.T) {
	f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) {
		r.Spec.ClusterRef.Name, r.Spec.KubeconfigSecretRef.Name = "demo", "access"
	})
	f.settle()
	f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.Suspend = true })
	f.admit(nil, true)

	parent := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
	if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(parent), parent); err != nil {
		t.Fatal(err)
	}

	parent.Status.OtherHub = "hub-2"
	if err := f.client.Update(t.Context(), parent); err != nil {
		t.Fatal(err)
	}

	f.run()

	if got := f.get().Status.OtherHub; got != "hub-2" {
		t.Fatalf("status.otherHub %q", got)
	}

	if err := f.client.Delete(t.Context(), parent); err != nil {
		t.Fatal(err)
	}

	f.run()
	f.remove()
	f.settle()

	if told := f.said(); !f.gone() || !strings.Contains(told, "LeftBehind") || !strings.Contains(told, "hub-2") {
		t.Errorf("gone: %t, events: %s", f.gone(), told)
	}

	f.wantActions(helm.ActionInstall)
}
