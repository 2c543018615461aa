package omnihelmrelease

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kittest"
)

func valid() *omni.OmniHelmRelease {
	return &omni.OmniHelmRelease{Spec: omni.OmniHelmReleaseSpec{
		ClusterRef:          omni.LocalObjectReference{Name: "production"},
		KubeconfigSecretRef: omni.SecretKeyReference{Name: "production-kubeconfig", Key: "kubeconfig"},
		ReleaseName:         "web",
		Namespace:           "default",
		Chart:               omni.HelmChart{Repository: "https://charts.example.com", Chart: "web", Version: "1.2.3"},
		Timeout:             "5m",
		Interval:            "10m",
		DriftDetection:      omni.DriftDetection{Mode: omni.DriftDisabled},
		DeletionPolicy:      omni.ReleaseUninstall,
	}}
}

func invalid() *omni.OmniHelmRelease {
	o := valid()
	o.Spec.Chart.Chart = ""

	return o
}

func TestDescriptor(t *testing.T) {
	kittest.Run(t, kittest.Case[*omni.OmniHelmRelease]{
		Descriptor: Descriptor(),
		Valid:      valid,
		Invalid:    invalid,
		Change:     func(o *omni.OmniHelmRelease) { o.Spec.Chart.Version = "1.2.4" },
		BadChange:  func(o *omni.OmniHelmRelease) { o.Spec.ReleaseName = "shop" },
		EmptyList:  func(o *omni.OmniHelmRelease) { o.Spec.DependsOn = []omni.LocalObjectReference{} },
		Rows: []kittest.Row[*omni.OmniHelmRelease]{
			{
				Name:   "new",
				Change: func(*omni.OmniHelmRelease) {},
				Cells:  []any{"Unknown", "production", "web", "1.2.3", int64(0), "<none>"},
			},
			{
				Name: "deployed at an older version than asked for",
				Change: func(o *omni.OmniHelmRelease) {
					o.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "Error"}}
					o.Status.ChartVersion = "1.2.2"
					o.Status.Revision = 4
					o.Status.ReleaseStatus = "deployed"
				},
				Cells: []any{"False", "production", "web", "1.2.2", int64(4), "deployed"},
			},
			{
				Name:   "any version",
				Change: func(o *omni.OmniHelmRelease) { o.Spec.Chart.Version = "" },
				Cells:  []any{"Unknown", "production", "web", "<none>", int64(0), "<none>"},
			},
		},
	})
}
