package index

import (
	"context"
	"fmt"

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
