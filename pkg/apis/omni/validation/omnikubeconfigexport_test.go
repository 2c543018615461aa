package validation

import (
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func validExport() *v1alpha1.OmniKubeconfigExport {
	return &v1alpha1.OmniKubeconfigExport{
		ObjectMeta: meta("automation"),
		Spec: v1alpha1.OmniKubeconfigExportSpec{
			ClusterRef:      v1alpha1.LocalObjectReference{Name: "cluster-01"},
			TargetSecretRef: v1alpha1.TargetSecretReference{Name: "automation", Key: "kubeconfig"},
			ServiceAccount:  v1alpha1.KubeconfigServiceAccount{User: "automation", Groups: []string{"cluster-automation"}},
			TTL:             "24h",
			RenewBefore:     "4h",
			DeletionPolicy:  v1alpha1.DeletionDelete,
			Format:          v1alpha1.FormatKubeconfig,
		},
	}
}

func TestValidateOmniKubeconfigExport(t *testing.T) {
	groups := func(list ...string) func(*v1alpha1.OmniKubeconfigExport) {
		return func(e *v1alpha1.OmniKubeconfigExport) { e.Spec.ServiceAccount.Groups = list }
	}
	lifetime := func(ttl, renewBefore v1alpha1.Duration) func(*v1alpha1.OmniKubeconfigExport) {
		return func(e *v1alpha1.OmniKubeconfigExport) { e.Spec.TTL, e.Spec.RenewBefore = ttl, renewBefore }
	}

	const (
		badTTL   = "spec.ttl: Invalid value"
		badRenew = "spec.renewBefore: Invalid value"
	)

	checkRules(t, validExport, ValidateOmniKubeconfigExport, []row[v1alpha1.OmniKubeconfigExport]{
		{name: "valid"},
		{"cluster missing", func(e *v1alpha1.OmniKubeconfigExport) { e.Spec.ClusterRef.Name = "" }, []string{"spec.clusterRef.name: Required value"}},
		{"target missing", func(e *v1alpha1.OmniKubeconfigExport) { e.Spec.TargetSecretRef = v1alpha1.TargetSecretReference{} },
			[]string{"spec.targetSecretRef.name: Required value"}},
		{"target wrong", func(e *v1alpha1.OmniKubeconfigExport) {
			e.Spec.TargetSecretRef = v1alpha1.TargetSecretReference{Name: "A", Key: "a/b"}
		}, []string{"spec.targetSecretRef.name: Invalid value", "spec.targetSecretRef.key: Invalid value"}},
		{"another key", func(e *v1alpha1.OmniKubeconfigExport) { e.Spec.TargetSecretRef.Key = "workload.kubeconfig" }, nil},
		{"no user", func(e *v1alpha1.OmniKubeconfigExport) { e.Spec.ServiceAccount.User = " " }, []string{"spec.serviceAccount.user: Required value"}},
		{"no groups", groups(), []string{"spec.serviceAccount.groups: Required value"}},
		{"group twice", groups("a", "b", "a"), []string{"spec.serviceAccount.groups[2]: Duplicate value"}},
		{"empty group", groups("a", ""), []string{"spec.serviceAccount.groups[1]: Required value"}},
		{"cluster admin", groups("a", "system:masters"), []string{"spec.serviceAccount.groups[1]: Forbidden"}},
		{"cluster admin allowed", func(e *v1alpha1.OmniKubeconfigExport) {
			e.Spec.ServiceAccount.Groups, e.Spec.ServiceAccount.AllowClusterAdmin = []string{"system:masters"}, true
		}, nil},
		{"other system group", groups("system:authenticated"), nil},
		{"no ttl", lifetime("", "4h"), []string{"spec.ttl: Required value"}},
		{"shortest ttl", lifetime("5m", "4m59s"), nil},
		{"ttl too short", lifetime("4m59s", ""), []string{badTTL}},
		{"longest ttl", lifetime("8760h", "1h"), nil},
		{"ttl too long", lifetime("8760h1s", "1h"), []string{badTTL}},
		{"ttl no duration", lifetime("1d", "1h"), []string{badTTL}},
		{"renewal at expiration", lifetime("24h", ""), nil},
		{"renewal 0", lifetime("24h", "0s"), []string{badRenew}},
		{"renewal negative", lifetime("24h", "-1h"), []string{badRenew}},
		{"renewal as long as ttl", lifetime("24h", "1440m"), []string{badRenew}},
		{"renewal no duration", lifetime("24h", "soon"), []string{badRenew}},
		{"both wrong", lifetime("1s", "soon"), []string{badTTL, badRenew}},
		{"orphan", func(e *v1alpha1.OmniKubeconfigExport) { e.Spec.DeletionPolicy = v1alpha1.DeletionOrphan }, nil},
		{"no deletion policy, as it may be in an update without defaults", func(e *v1alpha1.OmniKubeconfigExport) { e.Spec.DeletionPolicy = "" }, nil},
		{"deletion policy of another kind", func(e *v1alpha1.OmniKubeconfigExport) { e.Spec.DeletionPolicy = "Uninstall" },
			[]string{"spec.deletionPolicy: Unsupported value"}},
		{"context namespace", func(e *v1alpha1.OmniKubeconfigExport) { e.Spec.ContextNamespace = "apps" }, nil},
		{"context namespace wrong", func(e *v1alpha1.OmniKubeconfigExport) { e.Spec.ContextNamespace = "a.b" }, []string{"spec.contextNamespace: Invalid value"}},
		{"Argo CD", func(e *v1alpha1.OmniKubeconfigExport) { e.Spec.Format = v1alpha1.FormatArgoCD }, nil},
		{"unknown format", func(e *v1alpha1.OmniKubeconfigExport) { e.Spec.Format = "argocd" }, []string{"spec.format: Unsupported value"}},
		{"Secret metadata", func(e *v1alpha1.OmniKubeconfigExport) {
			e.Spec.SecretTemplate = &v1alpha1.SecretTemplate{
				Labels:      map[string]string{"a": "b", "argocd.argoproj.io/secret-type": "x"},
				Annotations: map[string]string{"a": "any text"},
			}
		}, nil},
		{"our keys", func(e *v1alpha1.OmniKubeconfigExport) {
			e.Spec.SecretTemplate = &v1alpha1.SecretTemplate{
				Labels:      map[string]string{"omni.texashpc.com/owner": "x"},
				Annotations: map[string]string{"omni.texashpc.com/hash": "x"},
			}
		}, []string{
			"spec.secretTemplate.labels[omni.texashpc.com/owner]: Forbidden",
			"spec.secretTemplate.annotations[omni.texashpc.com/hash]: Forbidden",
		}},
		{"no Kubernetes metadata", func(e *v1alpha1.OmniKubeconfigExport) {
			e.Spec.SecretTemplate = &v1alpha1.SecretTemplate{
				Labels:      map[string]string{"a": "b c"},
				Annotations: map[string]string{"a b": ""},
			}
		}, []string{"spec.secretTemplate.labels: Invalid value", "spec.secretTemplate.annotations: Invalid value"}},
		{"Argo CD's own label", func(e *v1alpha1.OmniKubeconfigExport) {
			e.Spec.Format = v1alpha1.FormatArgoCD
			e.Spec.SecretTemplate = &v1alpha1.SecretTemplate{Labels: map[string]string{"argocd.argoproj.io/secret-type": "x"}}
		}, []string{"spec.secretTemplate.labels[argocd.argoproj.io/secret-type]: Forbidden"}},
	})
}

func TestValidateOmniKubeconfigExportUpdate(t *testing.T) {
	checkUpdates(t, validExport, ValidateOmniKubeconfigExportUpdate, []updateRow[v1alpha1.OmniKubeconfigExport]{
		{name: "nothing changed"},
		{"another cluster and target", nil, func(e *v1alpha1.OmniKubeconfigExport) {
			e.Spec.ClusterRef.Name, e.Spec.TargetSecretRef.Name = "other", "other"
		}, nil},
		{"another cluster when its Secret was written", func(e *v1alpha1.OmniKubeconfigExport) {
			e.Status.TargetSecretRef = &v1alpha1.TargetSecretReference{Name: "kubeconfig"}
		}, func(e *v1alpha1.OmniKubeconfigExport) { e.Spec.ClusterRef.Name = "other" }, []string{"spec.clusterRef.name: Invalid value"}},
		{"another target when its Secret was written", func(e *v1alpha1.OmniKubeconfigExport) {
			e.Status.TargetSecretRef = &v1alpha1.TargetSecretReference{Name: "kubeconfig"}
		}, func(e *v1alpha1.OmniKubeconfigExport) { e.Spec.TargetSecretRef.Name = "other" }, nil},
		{"bad ttl", nil, func(e *v1alpha1.OmniKubeconfigExport) { e.Spec.TTL = "1s" }, []string{"spec.ttl: Invalid value"}},
		{"bad ttl while being deleted", func(e *v1alpha1.OmniKubeconfigExport) { deleting(&e.ObjectMeta) },
			func(e *v1alpha1.OmniKubeconfigExport) { e.Spec.TTL = "1s" }, nil},
	})
}

func TestWarningsForOmniKubeconfigExport(t *testing.T) {
	export := validExport()
	checkWarnings(t, WarningsForOmniKubeconfigExport(export), nil)

	export.Spec.RenewBefore = ""
	export.Spec.ServiceAccount.User = "system:automation"
	export.Spec.ServiceAccount.Groups = []string{"a", "system:masters", "system:nodes"}

	checkWarnings(t, WarningsForOmniKubeconfigExport(export), []string{
		"spec.serviceAccount.user: Kubernetes itself uses system: users; choose another one",
		"spec.serviceAccount.groups[1]: Kubernetes itself uses system: groups; bind one of your own",
		"spec.serviceAccount.groups[2]: Kubernetes itself uses system: groups; bind one of your own",
		"spec.renewBefore: unset: a new kubeconfig comes as the old one expires, or just before; readers may lose access",
	})
}
