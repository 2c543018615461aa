package validation

import (
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func validSync() *v1alpha1.OmniSecretSync {
	return &v1alpha1.OmniSecretSync{
		ObjectMeta: meta("ghcr"),
		Spec: v1alpha1.OmniSecretSyncSpec{
			ClusterRef:          v1alpha1.LocalObjectReference{Name: "cluster-01"},
			KubeconfigSecretRef: v1alpha1.SecretKeyReference{Name: "automation", Key: "kubeconfig"},
			SourceSecretRef:     v1alpha1.LocalObjectReference{Name: "ghcr"},
			TargetSecretRef:     v1alpha1.NamespacedSecretReference{Name: "ghcr", Namespace: "flux-system"},
			DeletionPolicy:      v1alpha1.DeletionDelete,
		},
	}
}

func TestValidateOmniSecretSync(t *testing.T) {
	keys := func(list ...v1alpha1.SecretKeyMapping) func(*v1alpha1.OmniSecretSync) {
		return func(s *v1alpha1.OmniSecretSync) { s.Spec.Keys = list }
	}

	checkRules(t, validSync, ValidateOmniSecretSync, []row[v1alpha1.OmniSecretSync]{
		{name: "valid"},
		{"everything missing", func(s *v1alpha1.OmniSecretSync) { s.Spec = v1alpha1.OmniSecretSyncSpec{} }, []string{
			"spec.clusterRef.name: Required value", "spec.kubeconfigSecretRef.name: Required value", "spec.sourceSecretRef.name: Required value",
			"spec.targetSecretRef.name: Required value", "spec.targetSecretRef.namespace: Required value",
		}},
		{"every name wrong", func(s *v1alpha1.OmniSecretSync) {
			s.Spec.ClusterRef.Name, s.Spec.SourceSecretRef.Name = "A", "B"
			s.Spec.KubeconfigSecretRef = v1alpha1.SecretKeyReference{Name: "C", Key: "a/b"}
			s.Spec.TargetSecretRef = v1alpha1.NamespacedSecretReference{Name: "D", Namespace: "a.b"}
		}, []string{
			"spec.clusterRef.name: Invalid value", "spec.kubeconfigSecretRef.name: Invalid value", "spec.kubeconfigSecretRef.key: Invalid value",
			"spec.sourceSecretRef.name: Invalid value", "spec.targetSecretRef.name: Invalid value", "spec.targetSecretRef.namespace: Invalid value",
		}},
		{"type", func(s *v1alpha1.OmniSecretSync) { s.Spec.Type = "kubernetes.io/dockerconfigjson" }, nil},
		{"type too long", func(s *v1alpha1.OmniSecretSync) { s.Spec.Type = strings.Repeat("a", 254) }, []string{"spec.type: Too long"}},
		{"keys", keys(v1alpha1.SecretKeyMapping{From: "a", To: "b"}, v1alpha1.SecretKeyMapping{From: "a", To: ".c-d_E"}), nil},
		{"empty keys", keys(v1alpha1.SecretKeyMapping{}, v1alpha1.SecretKeyMapping{}), []string{
			"spec.keys[0].from: Required value", "spec.keys[0].to: Required value",
			"spec.keys[1].from: Required value", "spec.keys[1].to: Required value",
		}},
		{"bad keys", keys(v1alpha1.SecretKeyMapping{From: "a/b", To: ".."}), []string{"spec.keys[0].from: Invalid value", "spec.keys[0].to: Invalid value"}},
		{"one target key twice", keys(v1alpha1.SecretKeyMapping{From: "a", To: "c"}, v1alpha1.SecretKeyMapping{From: "b", To: "c"}),
			[]string{"spec.keys[1].to: Duplicate value"}},
		{"metadata", func(s *v1alpha1.OmniSecretSync) {
			s.Spec.Labels, s.Spec.Annotations = map[string]string{"a": "b"}, map[string]string{"a": "any text"}
		}, nil},
		{"our keys and wrong metadata", func(s *v1alpha1.OmniSecretSync) {
			s.Spec.Labels = map[string]string{"omni.texashpc.com/x": "b"}
			s.Spec.Annotations = map[string]string{"a b": "", "omni.texashpc.com/x": ""}
		}, []string{
			"spec.labels[omni.texashpc.com/x]: Forbidden", "spec.annotations: Invalid value", "spec.annotations[omni.texashpc.com/x]: Forbidden",
		}},
		{"orphan", func(s *v1alpha1.OmniSecretSync) { s.Spec.DeletionPolicy = v1alpha1.DeletionOrphan }, nil},
		{"unknown deletion policy", func(s *v1alpha1.OmniSecretSync) { s.Spec.DeletionPolicy = "Keep" }, []string{"spec.deletionPolicy: Unsupported value"}},
	})
}

func TestValidateOmniSecretSyncUpdate(t *testing.T) {
	redirect := func(s *v1alpha1.OmniSecretSync) {
		s.Spec.ClusterRef.Name = "other"
		s.Spec.KubeconfigSecretRef = v1alpha1.SecretKeyReference{Name: "other", Key: "other"}
	}
	redirected := []string{
		"spec.clusterRef.name: Invalid value", "spec.kubeconfigSecretRef.name: Invalid value", "spec.kubeconfigSecretRef.key: Invalid value",
	}

	checkUpdates(t, validSync, ValidateOmniSecretSyncUpdate, []updateRow[v1alpha1.OmniSecretSync]{
		{name: "nothing changed"},
		{"another source and target", nil, func(s *v1alpha1.OmniSecretSync) {
			s.Spec.SourceSecretRef.Name, s.Spec.TargetSecretRef.Namespace = "other", "other"
		}, nil},
		{"redirected", nil, redirect, redirected},
		{"redirected while being deleted", func(s *v1alpha1.OmniSecretSync) { deleting(&s.ObjectMeta) }, redirect, redirected},
		{"other rules while being deleted", func(s *v1alpha1.OmniSecretSync) { deleting(&s.ObjectMeta) },
			func(s *v1alpha1.OmniSecretSync) { s.Spec.SourceSecretRef.Name = "" }, nil},
		{"bad target", nil, func(s *v1alpha1.OmniSecretSync) { s.Spec.TargetSecretRef.Name = "" }, []string{"spec.targetSecretRef.name: Required value"}},
	})
}
