package omnicluster

import (
	"context"
	"maps"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
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

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}
}

// ClusterOfDocument returns the cluster that an OmniControlPlane, OmniWorkers or OmniMachine refers to, whether it exists
// or not; nothing for an object of another kind, or one that refers to none.
func ClusterOfDocument(_ context.Context, object client.Object) []reconcile.Request {
	name := v1alpha1.ClusterRefOf(object)
	if name == "" {
		return nil
	}

	return []reconcile.Request{request(object.GetNamespace(), name)}
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
			requests = append(requests, request(object.GetNamespace(), name))
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

// ConnectionChanged is a predicate for updates of an OmniConnection that concern its clusters: its spec, a deletion, a previous hub,
// and what its condition Ready says in a word. Its message may change with each try to connect, and with each cluster that goes.
func ConnectionChanged() predicate.Predicate {
	ready := func(object client.Object) metav1.Condition {
		connection, ok := object.(*v1alpha1.OmniConnection)
		if !ok {
			return metav1.Condition{}
		}

		found := apimeta.FindStatusCondition(connection.Status.Conditions, v1alpha1.ConditionReady)
		if found == nil {
			return metav1.Condition{}
		}

		return metav1.Condition{Status: found.Status, Reason: found.Reason}
	}

	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			hubs.PreviousChanged().Update(e) || ready(e.ObjectOld) != ready(e.ObjectNew)
	}}
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// EnqueueForPolicy enqueues the clusters that a change of an OmniRolloutPolicy concerns. If only tickets changed, it
// enqueues the clusters of these tickets: the others wait for something else. If the policy allows other changes than
// before, it enqueues all that wait. A cluster that the policy no longer selects may be another policy's alone now.
func (m *Mapper) EnqueueForPolicy() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { m.wakeAll(ctx, e.Object, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { m.wakeAll(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, wasPolicy := e.ObjectOld.(*v1alpha1.OmniRolloutPolicy)
			after, isPolicy := e.ObjectNew.(*v1alpha1.OmniRolloutPolicy)

			if !wasPolicy || !isPolicy {
				return
			}

			if before.Generation != after.Generation {
				m.wake(ctx, after.Namespace, q, freed(before, after))
			}

			if letsOthersBegin(before, after) {
				m.wakeAll(ctx, after, q)
			} else {
				for _, name := range ticketsChanged(before, after) {
					q.Add(request(after.Namespace, name))
				}
			}
		},
	}
}

// wakeAll enqueues the clusters that a policy concerns.
func (m *Mapper) wakeAll(ctx context.Context, object client.Object, q queue) {
	if policy, isPolicy := object.(*v1alpha1.OmniRolloutPolicy); isPolicy {
		m.wake(ctx, policy.Namespace, q, concerns(policy))
	}
}

// wake enqueues the clusters of a namespace for which concerned is true.
func (m *Mapper) wake(ctx context.Context, namespace string, q queue, concerned func(*v1alpha1.OmniCluster) bool) {
	index.Each(ctx, m.client, &v1alpha1.OmniClusterList{}, func(cluster *v1alpha1.OmniCluster) {
		if concerned(cluster) {
			q.Add(request(cluster.Namespace, cluster.Name))
		}
	}, client.InNamespace(namespace))
}

// freed returns whether a cluster's changes may no longer wait for a policy whose spec changed: it does not select the
// cluster any more, or can be read again.
func freed(before, after *v1alpha1.OmniRolloutPolicy) func(*v1alpha1.OmniCluster) bool {
	was, _ := rollout.New(before)
	is, _ := rollout.New(after)

	return func(cluster *v1alpha1.OmniCluster) bool { return was.MaySelect(cluster) && !is.MaySelect(cluster) }
}

// concerns returns whether a cluster's changes may wait for a policy: it selects the cluster, or cannot be read, or is
// named by the cluster's status.
func concerns(policy *v1alpha1.OmniRolloutPolicy) func(*v1alpha1.OmniCluster) bool {
	read, _ := rollout.New(policy)

	return func(cluster *v1alpha1.OmniCluster) bool {
		return read.MaySelect(cluster) || cluster.Status.Rollout != nil && cluster.Status.Rollout.Policy == policy.Name
	}
}

// letsOthersBegin reports whether a policy changed in what applies to all clusters, and not only to single ones. A new
// generation counts when the policy's controller has observed it.
func letsOthersBegin(before, after *v1alpha1.OmniRolloutPolicy) bool {
	if before.Status.ObservedGeneration != after.Status.ObservedGeneration {
		return true
	}

	for _, condition := range []string{v1alpha1.ConditionStalled, v1alpha1.ConditionRolloutStopped} {
		if apimeta.IsStatusConditionTrue(before.Status.Conditions, condition) != apimeta.IsStatusConditionTrue(after.Status.Conditions, condition) {
			return true
		}
	}

	return !slices.EqualFunc(before.Status.Stages, after.Status.Stages, func(a, b v1alpha1.RolloutStageStatus) bool {
		return a.Name == b.Name && slices.Equal(a.Qualified, b.Qualified) && a.PromotedUntil.Equal(b.PromotedUntil)
	})
}

// ticketsChanged returns the clusters whose ticket was added, removed or replaced.
func ticketsChanged(before, after *v1alpha1.OmniRolloutPolicy) []string {
	was, is := ticketsOf(before), ticketsOf(after)
	changed := map[string]bool{}

	for name, ticket := range is {
		if was[name] != ticket {
			changed[name] = true
		}
	}

	for name := range was {
		if _, still := is[name]; !still {
			changed[name] = true
		}
	}

	return slices.Sorted(maps.Keys(changed))
}

func ticketsOf(policy *v1alpha1.OmniRolloutPolicy) map[string]v1alpha1.RolloutTicket {
	tickets := map[string]v1alpha1.RolloutTicket{}
	for _, ticket := range policy.Status.Admitted {
		tickets[ticket.Cluster] = ticket
	}

	return tickets
}
