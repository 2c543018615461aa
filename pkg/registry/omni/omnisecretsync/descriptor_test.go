package omnisecretsync

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kittest"
)

func now() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

func valid() *v1alpha1.OmniSecretSync {
	return &v1alpha1.OmniSecretSync{Spec: v1alpha1.OmniSecretSyncSpec{
		ClusterRef:          v1alpha1.LocalObjectReference{Name: "production"},
		KubeconfigSecretRef: v1alpha1.SecretKeyReference{Name: "production-kubeconfig", Key: "kubeconfig"},
		SourceSecretRef:     v1alpha1.LocalObjectReference{Name: "registry"},
		TargetSecretRef:     v1alpha1.NamespacedSecretReference{Namespace: "apps", Name: "pull"},
		DeletionPolicy:      v1alpha1.DeletionDelete,
	}}
}

func invalid() *v1alpha1.OmniSecretSync {
	o := valid()
	o.Spec.TargetSecretRef.Namespace = "Not A Namespace"

	return o
}

func TestDescriptor(t *testing.T) {
	kittest.Run(t, kittest.Case[*v1alpha1.OmniSecretSync]{
		Descriptor: Descriptor(now),
		Valid:      valid,
		Invalid:    invalid,
		Change:     func(o *v1alpha1.OmniSecretSync) { o.Spec.SourceSecretRef.Name = "registry-2" },
		BadChange:  func(o *v1alpha1.OmniSecretSync) { o.Spec.ClusterRef.Name = "staging" },
		EmptyList:  func(o *v1alpha1.OmniSecretSync) { o.Spec.Keys = []v1alpha1.SecretKeyMapping{} },
		Rows: []kittest.Row[*v1alpha1.OmniSecretSync]{
			{
				Name:   "new",
				Change: func(*v1alpha1.OmniSecretSync) {},
				Cells:  []any{"Unknown", "<none>", "production", "registry", "apps/pull", "<none>", "<none>"},
			},
			{
				Name: "synced",
				Change: func(o *v1alpha1.OmniSecretSync) {
					synced := metav1.NewTime(now().Add(-90 * time.Second))
					o.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Succeeded"}}
					o.Status.LastSyncTime = &synced
				},
				Cells: []any{"True", "Succeeded", "production", "registry", "apps/pull", "90s", "<none>"},
			},
		},
	})
}

func TestDeletionOf(t *testing.T) {
	sync := valid()
	sync.Spec.ClusterRef.Name, sync.Spec.TargetSecretRef = "production", v1alpha1.NamespacedSecretReference{Namespace: "apps", Name: "db"}

	if got, want := deletionOf(sync).Does, `deletes the copy, Secret "apps/db" of cluster "production"`; got != want {
		t.Errorf("got %s", got)
	}

	sync.Spec.DeletionPolicy = v1alpha1.DeletionOrphan
	if got := deletionOf(sync).Does; got != "" {
		t.Errorf("orphaned: %s", got)
	}
}
