package omniconnection

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kittest"
)

func now() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

func valid() *omni.OmniConnection {
	return &omni.OmniConnection{Spec: omni.OmniConnectionSpec{
		Endpoint: "https://omni.example.com",
		Auth: omni.OmniConnectionAuth{
			ServiceAccountSecretRef: omni.SecretKeyReference{Name: "omni", Key: "serviceAccountKey"},
		},
	}}
}

func invalid() *omni.OmniConnection {
	o := valid()
	o.Spec.Endpoint = "https://"

	return o
}

func expiring(after time.Duration) *omni.OmniServiceAccountStatus {
	expiry := metav1.NewTime(now().Add(after))

	return &omni.OmniServiceAccountStatus{Name: "operator", ExpirationTime: &expiry}
}

func TestDescriptor(t *testing.T) {
	kittest.Run(t, kittest.Case[*omni.OmniConnection]{
		Descriptor: Descriptor(now),
		Valid:      valid,
		Invalid:    invalid,
		Change:     func(o *omni.OmniConnection) { o.Spec.Endpoint = "https://other.example.com" },
		BadChange:  func(o *omni.OmniConnection) { o.Spec.Endpoint = "https://" },
		Rows: []kittest.Row[*omni.OmniConnection]{
			{
				Name:   "new",
				Change: func(*omni.OmniConnection) {},
				Cells:  []any{"Unknown", "https://omni.example.com", "<none>", "<none>", "<none>"},
			},
			{
				Name: "ready",
				Change: func(o *omni.OmniConnection) {
					o.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Succeeded"}}
					o.Status.ServiceAccount = expiring(30 * 24 * time.Hour)
				},
				Cells: []any{"True", "https://omni.example.com", "operator", "in 30d", "Succeeded"},
			},
			{
				Name: "expired key",
				Change: func(o *omni.OmniConnection) {
					o.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "KeyExpired"}}
					o.Status.ServiceAccount = expiring(-3 * time.Hour)
				},
				Cells: []any{"False", "https://omni.example.com", "operator", "3h ago", "KeyExpired"},
			},
			{
				Name:   "account without expiry",
				Change: func(o *omni.OmniConnection) { o.Status.ServiceAccount = &omni.OmniServiceAccountStatus{} },
				Cells:  []any{"Unknown", "https://omni.example.com", "<none>", "<none>", "<none>"},
			},
		},
	})
}
