package omnisecretsync

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kittest"
)

func now() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

func valid() *omni.OmniSecretSync {
	return &omni.OmniSecretSync{Spec: omni.OmniSecretSyncSpec{
		ClusterRef:          omni.LocalObjectReference{Name: "production"},
		KubeconfigSecretRef: omni.SecretKeyReference{Name: "production-kubeconfig", Key: "kubeconfig"},
		SourceSecretRef:     omni.LocalObjectReference{Name: "registry"},
		TargetSecretRef:     omni.NamespacedSecretReference{Namespace: "apps", Name: "pull"},
		DeletionPolicy:      omni.DeletionDelete,
	}}
}

func invalid() *omni.OmniSecretSync {
	o := valid()
	o.Spec.TargetSecretRef.Namespace = "Not A Namespace"

	return o
}

func TestDescriptor(t *testing.T) {
	kittest.Run(t, kittest.Case[*omni.OmniSecretSync]{
		Descriptor: Descriptor(now),
		Valid:      valid,
		Invalid:    invalid,
		Change:     func(o *omni.OmniSecretSync) { o.Spec.SourceSecretRef.Name = "registry-2" },
		BadChange:  func(o *omni.OmniSecretSync) { o.Spec.ClusterRef.Name = "staging" },
		EmptyList:  func(o *omni.OmniSecretSync) { o.Spec.Keys = []omni.SecretKeyMapping{} },
		Rows: []kittest.Row[*omni.OmniSecretSync]{
			{
				Name:   "new",
				Change: func(*omni.OmniSecretSync) {},
				Cells:  []any{"Unknown", "production", "registry", "apps/pull", "<none>"},
			},
			{
				Name: "synced",
				Change: func(o *omni.OmniSecretSync) {
					synced := metav1.NewTime(now().Add(-90 * time.Second))
					o.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Succeeded"}}
					o.Status.LastSyncTime = &synced
				},
				Cells: []any{"True", "production", "registry", "apps/pull", "90s"},
			},
		},
	})
}
