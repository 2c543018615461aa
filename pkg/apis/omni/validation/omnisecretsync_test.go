package validation

import (
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni"
)

func validSync() *omni.OmniSecretSync {
	return &omni.OmniSecretSync{
		ObjectMeta: meta("ghcr"),
		Spec: omni.OmniSecretSyncSpec{
			ClusterRef:          omni.LocalObjectReference{Name: "cluster-01"},
			KubeconfigSecretRef: omni.SecretKeyReference{Name: "automation", Key: "kubeconfig"},
			SourceSecretRef:     omni.LocalObjectReference{Name: "ghcr"},
			TargetSecretRef:     omni.NamespacedSecretReference{Name: "ghcr", Namespace: "flux-system"},
			DeletionPolicy:      omni.DeletionDelete,
		},
	}
}

func TestValidateOmniSecretSync(t *testing.T) {
	keys := func(list ...omni.SecretKeyMapping) func(*omni.OmniSecretSync) {
		return func(s *omni.OmniSecretSync) { s.Spec.Keys = list }
	}

	checkRules(t, validSync, ValidateOmniSecretSync, []row[omni.OmniSecretSync]{
		{name: "valid"},
		{"everything missing", func(s *omni.OmniSecretSync) { s.Spec = omni.OmniSecretSyncSpec{} }, []string{
			"spec.clusterRef.name: Required value", "spec.kubeconfigSecretRef.name: Required value", "spec.sourceSecretRef.name: Required value",
			"spec.targetSecretRef.name: Required value", "spec.targetSecretRef.namespace: Required value",
		}},
		{"every name wrong", func(s *omni.OmniSecretSync) {
			s.Spec.ClusterRef.Name, s.Spec.SourceSecretRef.Name = "A", "B"
			s.Spec.KubeconfigSecretRef = omni.SecretKeyReference{Name: "C", Key: "a/b"}
			s.Spec.TargetSecretRef = omni.NamespacedSecretReference{Name: "D", Namespace: "a.b"}
		}, []string{
			"spec.clusterRef.name: Invalid value", "spec.kubeconfigSecretRef.name: Invalid value", "spec.kubeconfigSecretRef.key: Invalid value",
			"spec.sourceSecretRef.name: Invalid value", "spec.targetSecretRef.name: Invalid value", "spec.targetSecretRef.namespace: Invalid value",
		}},
		{"type", func(s *omni.OmniSecretSync) { s.Spec.Type = "kubernetes.io/dockerconfigjson" }, nil},
		{"type too long", func(s *omni.OmniSecretSync) { s.Spec.Type = strings.Repeat("a", 254) }, []string{"spec.type: Too long"}},
		{"keys", keys(omni.SecretKeyMapping{From: "a", To: "b"}, omni.SecretKeyMapping{From: "a", To: ".c-d_E"}), nil},
		{"empty keys", keys(omni.SecretKeyMapping{}, omni.SecretKeyMapping{}), []string{
			"spec.keys[0].from: Required value", "spec.keys[0].to: Required value",
			"spec.keys[1].from: Required value", "spec.keys[1].to: Required value",
		}},
		{"bad keys", keys(omni.SecretKeyMapping{From: "a/b", To: ".."}), []string{"spec.keys[0].from: Invalid value", "spec.keys[0].to: Invalid value"}},
		{"one target key twice", keys(omni.SecretKeyMapping{From: "a", To: "c"}, omni.SecretKeyMapping{From: "b", To: "c"}),
			[]string{"spec.keys[1].to: Duplicate value"}},
		{"metadata", func(s *omni.OmniSecretSync) {
			s.Spec.Labels, s.Spec.Annotations = map[string]string{"a": "b"}, map[string]string{"a": "any text"}
		}, nil},
		{"our keys and wrong metadata", func(s *omni.OmniSecretSync) {
			s.Spec.Labels = map[string]string{"omni.texashpc.com/x": "b"}
			s.Spec.Annotations = map[string]string{"a b": "", "omni.texashpc.com/x": ""}
		}, []string{
			"spec.labels[omni.texashpc.com/x]: Forbidden", "spec.annotations: Invalid value", "spec.annotations[omni.texashpc.com/x]: Forbidden",
		}},
		{"orphan", func(s *omni.OmniSecretSync) { s.Spec.DeletionPolicy = omni.DeletionOrphan }, nil},
		{"unknown deletion policy", func(s *omni.OmniSecretSync) { s.Spec.DeletionPolicy = "Keep" }, []string{"spec.deletionPolicy: Unsupported value"}},
	})
}

func TestValidateOmniSecretSyncUpdate(t *testing.T) {
	redirect := func(s *omni.OmniSecretSync) {
		s.Spec.ClusterRef.Name = "other"
		s.Spec.KubeconfigSecretRef = omni.SecretKeyReference{Name: "other", Key: "other"}
	}
	redirected := []string{
		"spec.clusterRef.name: Invalid value", "spec.kubeconfigSecretRef.name: Invalid value", "spec.kubeconfigSecretRef.key: Invalid value",
	}

	checkUpdates(t, validSync, ValidateOmniSecretSyncUpdate, []updateRow[omni.OmniSecretSync]{
		{name: "nothing changed"},
		{"another source and target", nil, func(s *omni.OmniSecretSync) {
			s.Spec.SourceSecretRef.Name, s.Spec.TargetSecretRef.Namespace = "other", "other"
		}, nil},
		{"redirected", nil, redirect, redirected},
		{"redirected while being deleted", func(s *omni.OmniSecretSync) { deleting(&s.ObjectMeta) }, redirect, redirected},
		{"other rules while being deleted", func(s *omni.OmniSecretSync) { deleting(&s.ObjectMeta) },
			func(s *omni.OmniSecretSync) { s.Spec.SourceSecretRef.Name = "" }, nil},
		{"bad target", nil, func(s *omni.OmniSecretSync) { s.Spec.TargetSecretRef.Name = "" }, []string{"spec.targetSecretRef.name: Required value"}},
	})
}

func TestWarningsForOmniSecretSync(t *testing.T) {
	checkWarnings(t, WarningsForOmniSecretSync(validSync()), nil)
}
