// Package index has the field indexes of the controllers' cache, and the lookups over them, so that no controller lists
// and filters.
//
// They are registered once for all controllers, because an index belongs to a kind in the cache and not to a
// controller.
package index

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Names of the indexes.
const (
	// ByConnection finds OmniClusters by spec.connectionRef.name.
	ByConnection = "spec.connectionRef.name"
	// ByRemote finds OmniClusters by RemoteKey: connection and cluster name in Omni.
	ByRemote = "remote"
	// ByCluster finds documents of a cluster by spec.clusterRef.name.
	ByCluster = "spec.clusterRef.name"
	// ByKeySecret finds OmniConnections by the name of their key's Secret.
	ByKeySecret = "spec.auth.serviceAccountSecretRef.name"
	// ByKubeconfigSecret finds OmniSecretSyncs and OmniHelmReleases by the name of their kubeconfig's Secret.
	ByKubeconfigSecret = "spec.kubeconfigSecretRef.name"
	// BySourceSecret finds OmniSecretSyncs by spec.sourceSecretRef.name.
	BySourceSecret = "spec.sourceSecretRef.name"
	// ByTargetSecret finds OmniKubeconfigExports, in all namespaces, by the Secret that spec.targetSecretRef names, as
	// types.NamespacedName writes it.
	ByTargetSecret = "spec.targetSecretRef"
	// ByExportUID finds the metadata of Secrets by the UID of the OmniKubeconfigExport that owns them.
	ByExportUID = "exportUID"
	// ByUID finds OmniConnections, OmniKubeconfigExports and OmniHelmReleases by UID.
	ByUID = "metadata.uid"
	// ByValueConfigMap finds objects by the ConfigMaps that a valueFrom names.
	ByValueConfigMap = "values.configMap"
	// ByValueSecret finds objects by the Secrets that a valueFrom names; OmniHelmReleases also by those with
	// credentials, certificates and keyrings for the chart.
	ByValueSecret = "values.secret"
)

// Index is one field index.
type Index struct {
	// Object is of the indexed kind.
	Object client.Object
	// Name is one of the constants of this package.
	Name string
	// Values returns the values under which an object is found.
	Values client.IndexerFunc
}

// All returns every index.
func All() []Index {
	indexes := []Index{
		{&v1alpha1.OmniCluster{}, ByConnection, of(func(o *v1alpha1.OmniCluster) []string { return []string{o.Spec.ConnectionRef.Name} })},
		{&v1alpha1.OmniCluster{}, ByRemote, of(func(o *v1alpha1.OmniCluster) []string {
			return []string{RemoteKey(o.Spec.ConnectionRef.Name, o.EffectiveClusterName())}
		})},
		{&v1alpha1.OmniConnection{}, ByKeySecret, of(func(o *v1alpha1.OmniConnection) []string {
			return []string{o.Spec.Auth.ServiceAccountSecretRef.Name}
		})},
		{&v1alpha1.OmniConnection{}, ByUID, uidOf},
		{&v1alpha1.OmniControlPlane{}, ByCluster, of(func(o *v1alpha1.OmniControlPlane) []string { return []string{o.Spec.ClusterRef.Name} })},
		{&v1alpha1.OmniWorkers{}, ByCluster, of(func(o *v1alpha1.OmniWorkers) []string { return []string{o.Spec.ClusterRef.Name} })},
		{&v1alpha1.OmniMachine{}, ByCluster, of(func(o *v1alpha1.OmniMachine) []string { return []string{o.Spec.ClusterRef.Name} })},
		{&v1alpha1.OmniSecretSync{}, ByCluster, of(func(o *v1alpha1.OmniSecretSync) []string { return []string{o.Spec.ClusterRef.Name} })},
		{&v1alpha1.OmniHelmRelease{}, ByCluster, of(func(o *v1alpha1.OmniHelmRelease) []string { return []string{o.Spec.ClusterRef.Name} })},
		{&v1alpha1.OmniSecretSync{}, ByKubeconfigSecret, of(func(o *v1alpha1.OmniSecretSync) []string {
			return []string{o.Spec.KubeconfigSecretRef.Name}
		})},
		{&v1alpha1.OmniHelmRelease{}, ByKubeconfigSecret, of(func(o *v1alpha1.OmniHelmRelease) []string {
			return []string{o.Spec.KubeconfigSecretRef.Name}
		})},
		{&v1alpha1.OmniSecretSync{}, BySourceSecret, of(func(o *v1alpha1.OmniSecretSync) []string {
			return []string{o.Spec.SourceSecretRef.Name}
		})},
		{&v1alpha1.OmniKubeconfigExport{}, ByCluster, of(func(o *v1alpha1.OmniKubeconfigExport) []string {
			return []string{o.Spec.ClusterRef.Name}
		})},
		{&v1alpha1.OmniKubeconfigExport{}, ByTargetSecret, of(func(o *v1alpha1.OmniKubeconfigExport) []string {
			return []string{o.EffectiveTarget().String()}
		})},
		{&v1alpha1.OmniKubeconfigExport{}, ByUID, uidOf},
		{SecretMetadata(), ByExportUID, func(o client.Object) []string {
			if uid := o.GetLabels()[v1alpha1.LabelExportUID]; uid != "" {
				return []string{uid}
			}

			return nil
		}},
	}

	indexes = append(indexes, helmReleases()...)

	for _, object := range []client.Object{
		&v1alpha1.OmniCluster{}, &v1alpha1.OmniControlPlane{}, &v1alpha1.OmniWorkers{}, &v1alpha1.OmniMachine{},
	} {
		indexes = append(indexes,
			Index{object, ByValueConfigMap, func(o client.Object) []string { return configMapsOf(valuesOf(o)) }},
			Index{object, ByValueSecret, func(o client.Object) []string { return secretsOf(valuesOf(o)) }})
	}

	return indexes
}

// Register adds every index to a cache. It has to happen before the cache starts.
func Register(ctx context.Context, indexer client.FieldIndexer) error {
	for _, i := range All() {
		if err := indexer.IndexField(ctx, i.Object, i.Name, i.Values); err != nil {
			return fmt.Errorf("index %T by %s: %w", i.Object, i.Name, err)
		}
	}

	return nil
}

// RemoteKey returns the value of ByRemote for a cluster.
func RemoteKey(connection, cluster string) string { return connection + "/" + cluster }

// uidOf is an index function for any kind.
func uidOf(object client.Object) []string { return []string{string(object.GetUID())} }

// of returns an index function for one kind.
func of[O client.Object](values func(O) []string) client.IndexerFunc {
	return func(object client.Object) []string {
		typed, ok := object.(O)
		if !ok {
			return nil
		}

		return values(typed)
	}
}

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
// So a cached object must never be the base of a patch of one of the lists or maps: sources.ChangeFinalizer reads
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
