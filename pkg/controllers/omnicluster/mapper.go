package omnicluster

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
)

// Remote names a cluster in Omni.
type Remote struct {
	// Connection is the UID of the OmniConnection.
	Connection string
	// Cluster is the cluster's name in Omni.
	Cluster string
}

// Mapper returns the OmniClusters that a change concerns, by the indexes of the cache. Its methods return no error: what
// cannot be read, they leave out, and a cluster that is missed is reconciled at its sync interval. They may return a
// cluster twice.
type Mapper struct {
	client client.Reader
}

// NewMapper returns a Mapper over a cache with the indexes of package index.
func NewMapper(cache client.Reader) *Mapper { return &Mapper{client: cache} }

func requestFor(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}
}

// ClusterOfDocument returns the cluster that an OmniControlPlane, OmniWorkers or OmniMachine refers to, whether it exists
// or not; nothing for an object of another kind, or one that refers to none.
func ClusterOfDocument(_ context.Context, object client.Object) []reconcile.Request {
	name := v1alpha1.ClusterRefOf(object)
	if name == "" {
		return nil
	}

	return []reconcile.Request{requestFor(object.GetNamespace(), name)}
}

// ClustersOfConnection returns the clusters of an OmniConnection.
func (m *Mapper) ClustersOfConnection(ctx context.Context, connection client.Object) []reconcile.Request {
	return m.clusters(ctx, client.InNamespace(connection.GetNamespace()), client.MatchingFields{index.ByConnection: connection.GetName()})
}

// OtherClaimants returns the objects that claim the same cluster in Omni as an OmniCluster, itself included if the cache
// still has it.
func (m *Mapper) OtherClaimants(ctx context.Context, object client.Object) []reconcile.Request {
	cluster, ok := object.(*v1alpha1.OmniCluster)
	if !ok {
		return nil
	}

	return m.clusters(ctx, client.InNamespace(cluster.Namespace),
		client.MatchingFields{index.ByRemote: index.RemoteKey(cluster.Spec.ConnectionRef.Name, cluster.EffectiveClusterName())})
}

// ClustersOfSecret returns the clusters of which a document reads a Secret.
func (m *Mapper) ClustersOfSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	return m.clustersOfValue(ctx, secret, index.ByValueSecret)
}

// ClustersOfConfigMap returns the clusters of which a document reads a ConfigMap.
func (m *Mapper) ClustersOfConfigMap(ctx context.Context, configMap client.Object) []reconcile.Request {
	return m.clustersOfValue(ctx, configMap, index.ByValueConfigMap)
}

// clustersOfValue returns the clusters of which a document reads a ConfigMap or Secret.
func (m *Mapper) clustersOfValue(ctx context.Context, source client.Object, by string) []reconcile.Request {
	options := []client.ListOption{client.InNamespace(source.GetNamespace()), client.MatchingFields{by: source.GetName()}}
	requests := m.clusters(ctx, options...)

	add := func(object client.Object) {
		if name := v1alpha1.ClusterRefOf(object); name != "" {
			requests = append(requests, requestFor(object.GetNamespace(), name))
		}
	}

	for _, documents := range []client.ObjectList{&v1alpha1.OmniControlPlaneList{}, &v1alpha1.OmniWorkersList{}, &v1alpha1.OmniMachineList{}} {
		index.Each(ctx, m.client, documents, add, options...)
	}

	return requests
}

// ClustersOfConnectionUID returns the clusters of the OmniConnection with a UID.
func (m *Mapper) ClustersOfConnectionUID(ctx context.Context, uid string) []reconcile.Request {
	var requests []reconcile.Request

	m.eachConnection(ctx, uid, func(connection *v1alpha1.OmniConnection) {
		requests = append(requests, m.ClustersOfConnection(ctx, connection)...)
	})

	return requests
}

// ClustersOfRemote returns the clusters that claim a cluster in Omni.
func (m *Mapper) ClustersOfRemote(ctx context.Context, remote Remote) []reconcile.Request {
	var requests []reconcile.Request

	m.eachConnection(ctx, remote.Connection, func(connection *v1alpha1.OmniConnection) {
		requests = append(requests, m.clusters(ctx, client.InNamespace(connection.Namespace),
			client.MatchingFields{index.ByRemote: index.RemoteKey(connection.Name, remote.Cluster)})...)
	})

	return requests
}

// eachConnection calls do for each OmniConnection with a UID. do may only read it, as with index.Each.
func (m *Mapper) eachConnection(ctx context.Context, uid string, do func(*v1alpha1.OmniConnection)) {
	index.Each(ctx, m.client, &v1alpha1.OmniConnectionList{}, do, client.MatchingFields{index.ByUID: uid})
}

// clusters returns the clusters that the options select.
func (m *Mapper) clusters(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	return index.Requests(ctx, m.client, &v1alpha1.OmniClusterList{}, options...)
}
