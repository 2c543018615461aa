package omnikubeconfigexport

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kittest"
)

func now() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

func after(d time.Duration) *metav1.Time {
	moment := metav1.NewTime(now().Add(d))

	return &moment
}

func valid() *v1alpha1.OmniKubeconfigExport {
	return &v1alpha1.OmniKubeconfigExport{Spec: v1alpha1.OmniKubeconfigExportSpec{
		ClusterRef:      v1alpha1.LocalObjectReference{Name: "production"},
		TargetSecretRef: v1alpha1.TargetSecretReference{Name: "production-kubeconfig", Key: "kubeconfig"},
		ServiceAccount:  v1alpha1.KubeconfigServiceAccount{User: "flux", Groups: []string{"deployers"}},
		TTL:             "24h",
		RenewBefore:     "8h",
		DeletionPolicy:  v1alpha1.DeletionDelete,
		Format:          v1alpha1.FormatKubeconfig,
	}}
}

func invalid() *v1alpha1.OmniKubeconfigExport {
	o := valid()
	o.Spec.ServiceAccount.Groups = []string{"system:masters"}

	return o
}

func TestDescriptor(t *testing.T) {
	kittest.Run(t, kittest.Case[*v1alpha1.OmniKubeconfigExport]{
		Descriptor: Descriptor(now),
		Valid:      valid,
		Invalid:    invalid,
		Change:     func(o *v1alpha1.OmniKubeconfigExport) { o.Spec.TTL = "48h" },
		BadChange:  func(o *v1alpha1.OmniKubeconfigExport) { o.Spec.TTL = "1s" },
		Rows: []kittest.Row[*v1alpha1.OmniKubeconfigExport]{
			{
				Name:   "new",
				Change: func(*v1alpha1.OmniKubeconfigExport) {},
				Cells:  []any{"Unknown", "<none>", "production", "production-kubeconfig", "<none>", "<none>", "<none>"},
			},
			{
				Name: "written",
				Change: func(o *v1alpha1.OmniKubeconfigExport) {
					o.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Succeeded"}}
					o.Status.ExpirationTime = after(20 * time.Hour)
					o.Status.NextRotationTime = after(12 * time.Hour)
				},
				Cells: []any{"True", "Succeeded", "production", "production-kubeconfig", "in 20h", "in 12h", "<none>"},
			},
			{
				Name:   "expired now",
				Change: func(o *v1alpha1.OmniKubeconfigExport) { o.Status.ExpirationTime = after(0) },
				Cells:  []any{"Unknown", "<none>", "production", "production-kubeconfig", "0s ago", "<none>", "<none>"},
			},
		},
	})
}

func TestDeletionOf(t *testing.T) {
	export := valid()
	export.Namespace, export.Spec.ClusterRef.Name, export.Spec.TargetSecretRef = "apps", "production", v1alpha1.TargetSecretReference{Name: "access"}

	if got, want := deletionOf(export).Does, `deletes Secret "apps/access" with the kubeconfig of cluster "production"`; got != want {
		t.Errorf("got %s", got)
	}

	export.Spec.DeletionPolicy = v1alpha1.DeletionOrphan
	if got := deletionOf(export).Does; got != "" {
		t.Errorf("orphaned: %s", got)
	}
}
