package watches

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
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// EnqueueForPolicy enqueues the clusters that a change of an OmniRolloutPolicy concerns. If only tickets changed, it enqueues the
// clusters of these tickets: the others wait for something else. If the policy allows other changes than before, it
// enqueues all that wait.
func (m *Mapper) EnqueueForPolicy() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { m.wakeAll(ctx, e.Object, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { m.wakeAll(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, wasPolicy := e.ObjectOld.(*v1alpha1.OmniRolloutPolicy)
			after, isPolicy := e.ObjectNew.(*v1alpha1.OmniRolloutPolicy)

			switch {
			case !wasPolicy || !isPolicy:
			case letsOthersBegin(before, after):
				m.wakeAll(ctx, after, q)
			default:
				for _, name := range ticketsChanged(before, after) {
					q.Add(request(after.Namespace, name))
				}
			}
		},
	}
}

// wakeAll enqueues the clusters of a namespace that a policy selects, or whose status names it.
func (m *Mapper) wakeAll(ctx context.Context, object client.Object, q queue) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()

	list := &v1alpha1.OmniClusterList{}
	if err := m.client.List(ctx, list, client.InNamespace(object.GetNamespace())); err != nil {
		return // found again at the sync interval
	}

	policy, isPolicy := object.(*v1alpha1.OmniRolloutPolicy)
	if !isPolicy {
		return
	}

	read, err := rollout.New(policy)

	for i := range list.Items {
		cluster := &list.Items[i]
		if err != nil || read.Selects(cluster) || cluster.Status.Rollout != nil && cluster.Status.Rollout.Policy == policy.Name {
			q.Add(request(cluster.Namespace, cluster.Name))
		}
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
