package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// maxSecretType bounds the type of a Secret, which Kubernetes does not limit.
const maxSecretType = 253

// ValidateOmniSecretSync checks a new OmniSecretSync.
func ValidateOmniSecretSync(obj *v1alpha1.OmniSecretSync) field.ErrorList {
	return append(validateMeta(&obj.ObjectMeta), validateOmniSecretSyncSpec(&obj.Spec, field.NewPath("spec"))...)
}

// ValidateOmniSecretSyncUpdate checks a changed OmniSecretSync. The target cluster is immutable, also while the
// object is being deleted: otherwise the cleanup would happen in the wrong cluster.
func ValidateOmniSecretSyncUpdate(obj, old *v1alpha1.OmniSecretSync) field.ErrorList {
	const remedy = "create a new OmniSecretSync for another cluster"

	spec := field.NewPath("spec")
	always := immutable(obj.Spec.ClusterRef.Name, old.Spec.ClusterRef.Name, spec.Child("clusterRef", "name"), remedy)
	always = append(always, immutable(obj.Spec.KubeconfigSecretRef.Name, old.Spec.KubeconfigSecretRef.Name,
		spec.Child("kubeconfigSecretRef", "name"), remedy)...)
	always = append(always, immutable(obj.Spec.KubeconfigSecretRef.Key, old.Spec.KubeconfigSecretRef.Key,
		spec.Child("kubeconfigSecretRef", "key"), remedy)...)

	return validateUpdate(change{
		meta: &obj.ObjectMeta, oldMeta: &old.ObjectMeta, spec: &obj.Spec, oldSpec: &old.Spec, always: always,
		rules: func() field.ErrorList { return validateOmniSecretSyncSpec(&obj.Spec, spec) },
	})
}

func validateOmniSecretSyncSpec(spec *v1alpha1.OmniSecretSyncSpec, path *field.Path) field.ErrorList {
	errs := validateReference(spec.ClusterRef, path.Child("clusterRef"), "an OmniCluster of this namespace")
	errs = append(errs, validateSecretKeyReference(spec.KubeconfigSecretRef, path.Child("kubeconfigSecretRef"),
		"the Secret that holds the kubeconfig of the workload cluster")...)
	errs = append(errs, validateReference(spec.SourceSecretRef, path.Child("sourceSecretRef"), "the Secret to copy")...)

	target := path.Child("targetSecretRef")
	errs = append(errs, validateObjectName(spec.TargetSecretRef.Name, target.Child("name"), "the Secret to write")...)
	errs = append(errs, validateNamespaceName(spec.TargetSecretRef.Namespace, target.Child("namespace"), "the namespace in the workload cluster")...)

	if len(spec.Type) > maxSecretType {
		errs = append(errs, field.TooLong(path.Child("type"), spec.Type, maxSecretType))
	}

	errs = append(errs, validateKeyMappings(spec.Keys, path.Child("keys"))...)
	errs = append(errs, validateSecretMetadata(spec.Labels, spec.Annotations, path)...)

	return append(errs, validateEnum(spec.DeletionPolicy, path.Child("deletionPolicy"), v1alpha1.DeletionDelete, v1alpha1.DeletionOrphan)...)
}

func validateKeyMappings(keys []v1alpha1.SecretKeyMapping, path *field.Path) field.ErrorList {
	var errs field.ErrorList

	seen := make(map[string]bool, len(keys))

	for i, key := range keys {
		at := path.Index(i)
		errs = append(errs, requireDataKey(key.From, at.Child("from"), "name the key of the source")...)
		errs = append(errs, requireDataKey(key.To, at.Child("to"), "name the key of the target")...)

		if key.To != "" && seen[key.To] {
			errs = append(errs, field.Duplicate(at.Child("to"), key.To))
		}

		seen[key.To] = true
	}

	return errs
}
