package omnihelmrelease

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kittest"
)

func valid() *v1alpha1.OmniHelmRelease {
	return &v1alpha1.OmniHelmRelease{Spec: v1alpha1.OmniHelmReleaseSpec{
		ClusterRef:          v1alpha1.LocalObjectReference{Name: "production"},
		KubeconfigSecretRef: v1alpha1.SecretKeyReference{Name: "production-kubeconfig", Key: "kubeconfig"},
		ReleaseName:         "web",
		Namespace:           "default",
		Chart:               v1alpha1.HelmChart{Repository: "https://charts.example.com", Chart: "web", Version: "1.2.3"},
		Timeout:             "5m",
		Interval:            "10m",
		DriftDetection:      v1alpha1.DriftDetection{Mode: v1alpha1.DriftDisabled},
		DeletionPolicy:      v1alpha1.ReleaseUninstall,
	}}
}

func invalid() *v1alpha1.OmniHelmRelease {
	o := valid()
	o.Spec.Chart.Chart = ""

	return o
}

func TestDescriptor(t *testing.T) {
	kittest.Run(t, kittest.Case[*v1alpha1.OmniHelmRelease]{
		Descriptor: Descriptor(),
		Valid:      valid,
		Invalid:    invalid,
		Change:     func(o *v1alpha1.OmniHelmRelease) { o.Spec.Chart.Version = "1.2.4" },
		BadChange:  func(o *v1alpha1.OmniHelmRelease) { o.Spec.ReleaseName = "shop" },
		EmptyList:  func(o *v1alpha1.OmniHelmRelease) { o.Spec.DependsOn = []v1alpha1.LocalObjectReference{} },
		Rows: []kittest.Row[*v1alpha1.OmniHelmRelease]{
			{
				Name:   "new",
				Change: func(*v1alpha1.OmniHelmRelease) {},
				Cells:  []any{"False", "Unknown", "<none>", "production", "web", "1.2.3", int64(0), "<none>", "<none>"},
			},
			{
				Name: "deployed at an older version than asked for",
				Change: func(o *v1alpha1.OmniHelmRelease) {
					o.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "Error"}}
					o.Status.ChartVersion = "1.2.2"
					o.Status.Revision = 4
					o.Status.ReleaseStatus = "deployed"
				},
				Cells: []any{"False", "False", "Error", "production", "web", "1.2.2", int64(4), "deployed", "<none>"},
			},
			{
				Name: "suspended while it was well",
				Change: func(o *v1alpha1.OmniHelmRelease) {
					o.Spec.Suspend = true
					o.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Released", Message: "revision 4 is deployed"}}
					o.Status.ChartVersion, o.Status.Revision, o.Status.ReleaseStatus = "1.2.3", 4, "deployed"
				},
				Cells: []any{"True", "True", "Released", "production", "web", "1.2.3", int64(4), "deployed", "revision 4 is deployed"},
			},
			{
				Name:   "any version",
				Change: func(o *v1alpha1.OmniHelmRelease) { o.Spec.Chart.Version = "" },
				Cells:  []any{"False", "Unknown", "<none>", "production", "web", "<none>", int64(0), "<none>", "<none>"},
			},
		},
	})
}

func TestDeletionOf(t *testing.T) {
	release := valid()
	if got, want := deletionOf(release).Does, `uninstalls release "web" in namespace "default" of cluster "production"`; got != want {
		t.Errorf("got %s", got)
	}

	release.Spec.DeletionPolicy = v1alpha1.ReleaseOrphan
	if got := deletionOf(release).Does; got != "" {
		t.Errorf("orphaned: %s", got)
	}
}
