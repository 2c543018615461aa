package validation

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

const (
	minTTL = 5 * time.Minute
	maxTTL = 8760 * time.Hour
	// systemPrefix is the prefix of users and groups that are reserved for Kubernetes itself.
	systemPrefix = "system:"
	// clusterAdmins is the group that no RBAC rule can restrict.
	clusterAdmins = "system:masters"
	// argoSecretType is the label by which Argo CD finds cluster Secrets.
	argoSecretType = "argocd.argoproj.io/secret-type"
)

// ValidateOmniKubeconfigExport checks a new OmniKubeconfigExport.
func ValidateOmniKubeconfigExport(obj *v1alpha1.OmniKubeconfigExport) field.ErrorList {
	return append(validateMeta(&obj.ObjectMeta), validateOmniKubeconfigExportSpec(&obj.Spec, field.NewPath("spec"))...)
}

// ValidateOmniKubeconfigExportUpdate checks a changed OmniKubeconfigExport. The target cluster is immutable once the Secret was written:
// otherwise those who read the Secret would find themselves in another cluster.
func ValidateOmniKubeconfigExportUpdate(obj, old *v1alpha1.OmniKubeconfigExport) field.ErrorList {
	var always field.ErrorList

	if written := old.WrittenTarget(); written.Name != "" {
		always = immutable(obj.Spec.ClusterRef.Name, old.Spec.ClusterRef.Name, field.NewPath("spec", "clusterRef", "name"),
			"Secret \""+written.Name+"\" leads to that cluster, and others may read it. Create an OmniKubeconfigExport with a Secret of its own for "+
				"the other cluster, then remove this one: "+deleteCommand("omnikubeconfigexport", &old.ObjectMeta))
	}

	return validateUpdate(change{
		meta: &obj.ObjectMeta, oldMeta: &old.ObjectMeta, spec: &obj.Spec, oldSpec: &old.Spec, always: always,
		rules: func() field.ErrorList { return validateOmniKubeconfigExportSpec(&obj.Spec, field.NewPath("spec")) },
	})
}

// WarningsForOmniKubeconfigExport returns advice on an OmniKubeconfigExport, as "path: message".
func WarningsForOmniKubeconfigExport(obj *v1alpha1.OmniKubeconfigExport) []string {
	var warnings []string

	spec := field.NewPath("spec")
	account := spec.Child("serviceAccount")

	if strings.HasPrefix(obj.Spec.ServiceAccount.User, systemPrefix) {
		warnings = append(warnings, warning(account.Child("user"), "Kubernetes itself uses system: users; choose another one"))
	}

	for i, group := range obj.Spec.ServiceAccount.Groups {
		if strings.HasPrefix(group, systemPrefix) {
			warnings = append(warnings, warning(account.Child("groups").Index(i), "Kubernetes itself uses system: groups; bind one of your own"))
		}
	}

	if obj.Spec.RenewBefore == "" {
		warnings = append(warnings, warning(spec.Child("renewBefore"), "unset: a new kubeconfig comes as the old one expires, or just before; readers may lose access"))
	}

	return warnings
}

func validateOmniKubeconfigExportSpec(spec *v1alpha1.OmniKubeconfigExportSpec, path *field.Path) field.ErrorList {
	errs := validateReference(spec.ClusterRef, path.Child("clusterRef"), "an OmniCluster of this namespace")
	errs = append(errs, validateTarget(&spec.TargetSecretRef, path.Child("targetSecretRef"))...)
	errs = append(errs, validateServiceAccount(&spec.ServiceAccount, path.Child("serviceAccount"))...)
	errs = append(errs, validateLifetime(spec, path)...)
	errs = append(errs, validateEnum(spec.DeletionPolicy, path.Child("deletionPolicy"), v1alpha1.DeletionDelete, v1alpha1.DeletionOrphan)...)

	if spec.ContextNamespace != "" {
		errs = append(errs, validateNamespaceName(spec.ContextNamespace, path.Child("contextNamespace"), "a namespace")...)
	}

	errs = append(errs, validateEnum(spec.Format, path.Child("format"), v1alpha1.FormatKubeconfig, v1alpha1.FormatArgoCD)...)

	return append(errs, validateSecretTemplate(spec, path.Child("secretTemplate"))...)
}

func validateTarget(ref *v1alpha1.TargetSecretReference, path *field.Path) field.ErrorList {
	errs := validateSecretKeyReference(v1alpha1.SecretKeyReference{Name: ref.Name, Key: ref.Key}, path, "the Secret to write")
	if ref.Namespace != "" {
		errs = append(errs, validateNamespaceName(ref.Namespace, path.Child("namespace"), "a namespace")...)
	}

	return errs
}

func validateServiceAccount(account *v1alpha1.KubeconfigServiceAccount, path *field.Path) field.ErrorList {
	var errs field.ErrorList

	if strings.TrimSpace(account.User) == "" {
		errs = append(errs, field.Required(path.Child("user"), "set the user name for the workload cluster"))
	}

	groups := path.Child("groups")
	if len(account.Groups) == 0 {
		// Omni issues a token without groups, and then does not accept it.
		errs = append(errs, field.Required(groups, "set at least one group, and bind it in the workload cluster"))
	}

	seen := make(map[string]bool, len(account.Groups))

	for i, group := range account.Groups {
		switch {
		case strings.TrimSpace(group) == "":
			errs = append(errs, field.Required(groups.Index(i), "name a group, or remove the entry"))
		case seen[group]:
			errs = append(errs, field.Duplicate(groups.Index(i), group))
		case group == clusterAdmins && !account.AllowClusterAdmin:
			errs = append(errs, field.Forbidden(groups.Index(i),
				clusterAdmins+" has every right: bind a group of your own, or set allowClusterAdmin: true"))
		}

		seen[group] = true
	}

	return errs
}

func validateLifetime(spec *v1alpha1.OmniKubeconfigExportSpec, path *field.Path) field.ErrorList {
	ttl, errs := requireDuration(spec.TTL, minTTL, maxTTL, path.Child("ttl"), "set how long a kubeconfig is valid, such as 24h")
	at := path.Child("renewBefore")

	renew, renewErrs := parseDuration(spec.RenewBefore, time.Nanosecond, noLimit, at)
	if len(renewErrs) == 0 && len(errs) == 0 && renew >= ttl {
		renewErrs = field.ErrorList{field.Invalid(at, spec.RenewBefore, "must be less than ttl")}
	}

	return append(errs, renewErrs...)
}

func validateSecretTemplate(spec *v1alpha1.OmniKubeconfigExportSpec, path *field.Path) field.ErrorList {
	template := ptr.Deref(spec.SecretTemplate, v1alpha1.SecretTemplate{})
	errs := validateSecretMetadata(template.Labels, template.Annotations, path)

	if _, set := template.Labels[argoSecretType]; set && spec.Format == v1alpha1.FormatArgoCD {
		errs = append(errs, field.Forbidden(path.Child("labels").Key(argoSecretType), "the format ArgoCD sets it: remove it here"))
	}

	return errs
}
