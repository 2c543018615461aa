package omnicluster

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
)

// mapper returns the OmniClusters that a change concerns, by the indexes of the cache. A cluster that it misses is
// reconciled at its sync interval.
type mapper struct {
	client client.Client
}

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}
}

// clusterRefOf returns the name of the cluster that a template document refers to.
func clusterRefOf(object client.Object) string {
	switch o := object.(type) {
	case *v1alpha1.OmniControlPlane:
		return o.Spec.ClusterRef.Name
	case *v1alpha1.OmniWorkers:
		return o.Spec.ClusterRef.Name
	case *v1alpha1.OmniMachine:
		return o.Spec.ClusterRef.Name
	}

	return ""
}

func clusterOfDocument(_ context.Context, object client.Object) []reconcile.Request {
	name := clusterRefOf(object)
	if name == "" {
		return nil
	}

	return []reconcile.Request{request(object.GetNamespace(), name)}
}

func (m *mapper) clustersOfConnection(ctx context.Context, connection client.Object) []reconcile.Request {
	return m.clusters(ctx, client.InNamespace(connection.GetNamespace()), client.MatchingFields{index.ByConnection: connection.GetName()})
}

// otherClaimants returns the other objects that claim the same cluster in Omni.
func (m *mapper) otherClaimants(ctx context.Context, object client.Object) []reconcile.Request {
	cluster, ok := object.(*v1alpha1.OmniCluster)
	if !ok {
		return nil
	}

	return m.clusters(ctx, client.InNamespace(cluster.Namespace),
		client.MatchingFields{index.ByRemote: index.RemoteKey(cluster.Spec.ConnectionRef.Name, cluster.EffectiveClusterName())})
}

func (m *mapper) clustersOfSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	return m.clustersOfValue(ctx, secret, index.ByValueSecret)
}

func (m *mapper) clustersOfConfigMap(ctx context.Context, configMap client.Object) []reconcile.Request {
	return m.clustersOfValue(ctx, configMap, index.ByValueConfigMap)
}

// clustersOfValue returns the clusters whose documents read a ConfigMap or Secret.
func (m *mapper) clustersOfValue(ctx context.Context, source client.Object, by string) []reconcile.Request {
	options := []client.ListOption{client.InNamespace(source.GetNamespace()), client.MatchingFields{by: source.GetName()}}
	requests := m.clusters(ctx, options...)

	add := func(object client.Object) {
		if name := clusterRefOf(object); name != "" {
			requests = append(requests, request(object.GetNamespace(), name))
		}
	}

	controlPlanes := &v1alpha1.OmniControlPlaneList{}
	if m.client.List(ctx, controlPlanes, options...) == nil {
		for i := range controlPlanes.Items {
			add(&controlPlanes.Items[i])
		}
	}

	workers := &v1alpha1.OmniWorkersList{}
	if m.client.List(ctx, workers, options...) == nil {
		for i := range workers.Items {
			add(&workers.Items[i])
		}
	}

	machines := &v1alpha1.OmniMachineList{}
	if m.client.List(ctx, machines, options...) == nil {
		for i := range machines.Items {
			add(&machines.Items[i])
		}
	}

	return requests
}

func (m *mapper) clustersOfConnectionUID(ctx context.Context, uid string) []reconcile.Request {
	var requests []reconcile.Request

	m.eachConnection(ctx, uid, func(connection *v1alpha1.OmniConnection) {
		requests = append(requests, m.clustersOfConnection(ctx, connection)...)
	})

	return requests
}

func (m *mapper) clustersOfRemote(ctx context.Context, remote Remote) []reconcile.Request {
	var requests []reconcile.Request

	m.eachConnection(ctx, remote.Connection, func(connection *v1alpha1.OmniConnection) {
		requests = append(requests, m.clusters(ctx, client.InNamespace(connection.Namespace),
			client.MatchingFields{index.ByRemote: index.RemoteKey(connection.Name, remote.Cluster)})...)
	})

	return requests
}

func (m *mapper) eachConnection(ctx context.Context, uid string, do func(*v1alpha1.OmniConnection)) {
	list := &v1alpha1.OmniConnectionList{}
	if err := m.client.List(ctx, list, client.MatchingFields{index.ByUID: uid}); err != nil {
		return
	}

	for i := range list.Items {
		do(&list.Items[i])
	}
}

func (m *mapper) clusters(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	ctx, cancel := contextWithDeadline(ctx)
	defer cancel()

	list := &v1alpha1.OmniClusterList{}
	if err := m.client.List(ctx, list, options...); err != nil {
		return nil
	}

	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, request(list.Items[i].Namespace, list.Items[i].Name))
	}

	return requests
}
