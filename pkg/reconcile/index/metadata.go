package index

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// AnnotationFormerExportName names the export of a Secret that the operator with CRDs wrote.
const AnnotationFormerExportName = v1alpha1.GroupName + "/kubeconfig-export-name"

// SecretMetadata returns an empty object for reading and watching Secrets without their content.
func SecretMetadata() *metav1.PartialObjectMetadata {
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))

	return metadata
}

// ConfigMapMetadata is SecretMetadata for ConfigMaps.
func ConfigMapMetadata() *metav1.PartialObjectMetadata {
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))

	return metadata
}

// KeepNeeded is the transform of the cache for the metadata of Secrets and ConfigMaps. It keeps the identity and what the
// controllers read from the cache, and nothing that grows with what the objects' owners write: labels and annotations
// of one object can take more than a megabyte, and kubectl apply puts the whole content of a Secret into an annotation.
//
// So a cached object must never be the base of a patch of one of the lists or maps: finalizers.Change reads
// the object itself.
func KeepNeeded(object any) (any, error) {
	metadata, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}

	metadata.ObjectMeta = metav1.ObjectMeta{
		Name: metadata.Name, Namespace: metadata.Namespace, UID: metadata.UID,
		ResourceVersion: metadata.ResourceVersion, Generation: metadata.Generation,
		CreationTimestamp: metadata.CreationTimestamp, DeletionTimestamp: metadata.DeletionTimestamp,
		Labels:      only(metadata.Labels, v1alpha1.LabelExportUID),
		Annotations: only(metadata.Annotations, v1alpha1.AnnotationExportName, v1alpha1.AnnotationExportNamespace, AnnotationFormerExportName),
		Finalizers:  ours(metadata.Finalizers),
	}

	return metadata, nil
}

// only returns the entries with these keys whose values can be the name of an object; nil if there are none. The value
// of an annotation may have any length.
func only(all map[string]string, keys ...string) map[string]string {
	var kept map[string]string

	for _, key := range keys {
		value, found := all[key]
		if !found || len(value) > validation.DNS1123SubdomainMaxLength {
			continue
		}

		if kept == nil {
			kept = make(map[string]string, 1)
		}

		kept[key] = value
	}

	return kept
}

// ours returns our own finalizers; nil if there are none.
func ours(finalizers []string) []string {
	var kept []string

	for _, name := range []string{v1alpha1.InUseFinalizer, v1alpha1.KubeconfigInUseFinalizer} {
		if slices.Contains(finalizers, name) {
			kept = append(kept, name)
		}
	}

	return kept
}
