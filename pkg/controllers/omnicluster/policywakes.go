package omnicluster

import (
	"context"
	"maps"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

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
					q.Add(requestFor(after.Namespace, name))
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
			q.Add(requestFor(cluster.Namespace, cluster.Name))
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
