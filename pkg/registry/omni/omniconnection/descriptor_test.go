package omniconnection

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kittest"
)

func now() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

func valid() *v1alpha1.OmniConnection {
	return &v1alpha1.OmniConnection{Spec: v1alpha1.OmniConnectionSpec{
		Endpoint: "https://omni.example.com",
		Auth: v1alpha1.OmniConnectionAuth{
			ServiceAccountSecretRef: v1alpha1.SecretKeyReference{Name: "omni", Key: "serviceAccountKey"},
		},
	}}
}

func invalid() *v1alpha1.OmniConnection {
	o := valid()
	o.Spec.Endpoint = "https://"

	return o
}

func expiring(after time.Duration) *v1alpha1.OmniServiceAccountStatus {
	expiry := metav1.NewTime(now().Add(after))

	return &v1alpha1.OmniServiceAccountStatus{Name: "operator", ExpirationTime: &expiry}
}

func TestDescriptor(t *testing.T) {
	kittest.Run(t, kittest.Case[*v1alpha1.OmniConnection]{
		Descriptor: Descriptor(now, clusters{}),
		Valid:      valid,
		Invalid:    invalid,
		Change:     func(o *v1alpha1.OmniConnection) { o.Spec.Endpoint = "https://other.example.com" },
		BadChange:  func(o *v1alpha1.OmniConnection) { o.Spec.Endpoint = "https://" },
		Rows: []kittest.Row[*v1alpha1.OmniConnection]{
			{
				Name:   "new",
				Change: func(*v1alpha1.OmniConnection) {},
				Cells:  []any{"Unknown", "<none>", "https://omni.example.com", "<none>", "<none>", "<none>", "<none>"},
			},
			{
				Name: "ready",
				Change: func(o *v1alpha1.OmniConnection) {
					o.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Succeeded"}}
					o.Status.Omni = &v1alpha1.OmniServerStatus{Version: "v1.9.3", APIVersion: 2}
					o.Status.ServiceAccount = expiring(30 * 24 * time.Hour)
				},
				Cells: []any{"True", "Succeeded", "https://omni.example.com", "v1.9.3", "operator", "in 30d", "<none>"},
			},
			{
				Name: "expired key",
				Change: func(o *v1alpha1.OmniConnection) {
					o.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "KeyExpired"}}
					o.Status.ServiceAccount = expiring(-3 * time.Hour)
				},
				Cells: []any{"False", "KeyExpired", "https://omni.example.com", "<none>", "operator", "3h ago", "<none>"},
			},
			{
				Name:   "account without expiry",
				Change: func(o *v1alpha1.OmniConnection) { o.Status.ServiceAccount = &v1alpha1.OmniServiceAccountStatus{} },
				Cells:  []any{"Unknown", "<none>", "https://omni.example.com", "<none>", "<none>", "<none>", "<none>"},
			},
		},
	})
}
