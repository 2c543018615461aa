// Package omnirolloutpolicy is the controller of OmniRolloutPolicy: it reads the OmniClusters that a policy selects,
// and writes into the policy's status which of them may begin. Package rollout decides that. The controller changes
// nothing remote, and writes no object except the policy's own status.
package omnirolloutpolicy

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/skew"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// kindName is the kind's name in metrics.
const kindName = "OmniRolloutPolicy"

const (
	// interval is how often a policy is reconciled without a trigger. Everything that it depends on is watched, and it
	// is reconciled at the times that matter for it.
	interval = 10 * time.Minute
	// skewInterval is how soon the clocks are compared again: no watch says that they agree.
	skewInterval = time.Minute
)

// reconciler has what the phases need.
type reconciler struct {
	client  client.Client
	events  events.EventRecorder
	options Options
}

func newReconciler(cached client.Client, recorder events.EventRecorder, options Options) *reconciler {
	if options.Now == nil {
		options.Now = time.Now
	}

	return &reconciler{client: cached, events: recorder, options: options}
}

// scope is what the phases of one run share.
type scope struct {
	policy  *v1alpha1.OmniRolloutPolicy
	members []rollout.Member
	result  *rollout.Result // nil if the policy cannot be used
}

func (r *reconciler) kind() loop.Kind[*v1alpha1.OmniRolloutPolicy, *scope] {
	return loop.Kind[*v1alpha1.OmniRolloutPolicy, *scope]{
		New:           func() *v1alpha1.OmniRolloutPolicy { return &v1alpha1.OmniRolloutPolicy{} },
		Interval:      func(*v1alpha1.OmniRolloutPolicy) time.Duration { return interval },
		NewScope:      func(policy *v1alpha1.OmniRolloutPolicy) *scope { return &scope{policy: policy} },
		Phases:        []loop.Phase[*scope]{{Run: r.evaluate}},
		Report:        r.report,
		Transient:     (*scope).transient,
		StatusWritten: r.announce,
		Reported: func(policy *v1alpha1.OmniRolloutPolicy) {
			r.options.Objects.SetInfo(metricsName(client.ObjectKeyFromObject(policy)), policy.Status.Conditions, "")
		},
		Gone: func(name types.NamespacedName) {
			r.options.Objects.Forget(metricsName(name))
			r.options.Rollouts.Forget(name)
		},
	}
}

func metricsName(name types.NamespacedName) metrics.Object {
	return metrics.Object{Kind: kindName, NamespacedName: name}
}

// evaluate reads all clusters of the policy and decides. While the policy cannot be used, its status stays as it is,
// and the clusters hold their changes.
func (r *reconciler) evaluate(ctx context.Context, s *scope) (loop.Outcome, error) {
	policy, err := rollout.New(s.policy)
	if err != nil {
		return loop.Stall(v1alpha1.ReasonInvalidTimeZone, "%v", err), nil
	}

	if differ := r.options.Skew.Now(); differ.TooLarge() {
		return loop.Stall(v1alpha1.ReasonClockSkew, "%s: nothing begins until they have agreed for a minute", differ).Within(skewInterval), nil
	}

	if s.members, err = r.membersOf(ctx, policy); err != nil {
		return loop.Outcome{}, err
	}

	now := r.options.Now()
	result := policy.Evaluate(s.members, now)
	s.result = &result

	outcome := loop.Continue(v1alpha1.ReasonInForce, "%s", summary(result, s.members, now))
	if s.policy.Spec.Hold {
		outcome = loop.Continue(v1alpha1.ReasonPolicyOnHold, "spec.hold is set: nothing begins until it is released (kubectl omni hold %s -n %s --release); %s",
			s.policy.Name, s.policy.Namespace, summary(result, s.members, now))
	}

	if !result.Next.IsZero() {
		outcome = outcome.Within(max(result.Next.Sub(now), time.Second))
	}

	return outcome, nil
}

// shownNames is how many clusters a message names.
const shownNames = 3

// summary returns the state of the rollout in one line: the numbers, what other policies select as well, and what soaks.
func summary(result rollout.Result, members []rollout.Member, now time.Time) string {
	clusters := int32(0)
	for _, stage := range result.Status.Stages {
		clusters += stage.Clusters
	}

	text := fmt.Sprintf("clusters: %d, of which %d wait, %d may begin or are at work, %d failed",
		clusters, result.Status.Held, len(result.Status.Admitted), result.Status.FailedCount)

	var conflicts []string

	for _, member := range members {
		if member.Conflict {
			conflicts = append(conflicts, member.Name)
		}
	}

	slices.Sort(conflicts)

	if len(conflicts) > 0 {
		text += "; nothing begins in those that another OmniRolloutPolicy selects as well: " + words.Few(conflicts, shownNames, ", ")
	}

	return text + soaking(result.Status, now)
}

// soaking says what changes wait for: versions that stages soak. No change waits for those of the last stage. A version goes
// on soaking when its time is over, until this process has seen the clusters.
func soaking(status v1alpha1.OmniRolloutPolicyStatus, now time.Time) string {
	if status.Held == 0 {
		return ""
	}

	text := ""

	for _, stage := range status.Stages[:max(0, len(status.Stages)-1)] {
		for _, version := range stage.Soaking {
			name := nameOf(v1alpha1.QualifiedVersion{Kubernetes: version.Kubernetes, Talos: version.Talos})

			switch {
			case version.Until == nil:
			case now.Before(version.Until.Time):
				text += fmt.Sprintf("; stage %q soaks %s until %s", stage.Name, name, words.TimeWithZone(version.Until.UTC()))
			default:
				text += fmt.Sprintf("; stage %q has soaked %s, and omni-controller has yet to look at its clusters in Omni", stage.Name, name)
			}
		}
	}

	return text
}

// membersOf returns the clusters that the policy selects, and those that still have a ticket or held changes of it.
func (r *reconciler) membersOf(ctx context.Context, policy *rollout.Policy) ([]rollout.Member, error) {
	object := policy.Object

	clusters, policies := &v1alpha1.OmniClusterList{}, &v1alpha1.OmniRolloutPolicyList{}
	for _, list := range []client.ObjectList{clusters, policies} {
		if err := r.client.List(ctx, list, client.InNamespace(object.Namespace)); err != nil {
			return nil, fmt.Errorf("list the clusters and policies of the namespace: %w", err)
		}
	}

	others := othersOf(policies.Items, object)

	var members []rollout.Member

	for i := range clusters.Items {
		cluster := &clusters.Items[i]
		selected := policy.Selects(cluster)

		if !selected && !isUnfinished(cluster, object) {
			continue
		}

		member := policy.MemberOf(cluster, r.options.Well.Confirms(cluster))
		member.HasLeft = !selected
		member.Conflict = selected && isSelectedBy(others, cluster)
		members = append(members, member)
	}

	return members, nil
}

// isUnfinished reports whether a cluster has a ticket of a policy, or changes that it held.
func isUnfinished(cluster *v1alpha1.OmniCluster, policy *v1alpha1.OmniRolloutPolicy) bool {
	for _, ticket := range policy.Status.Admitted {
		if ticket.Cluster == cluster.Name {
			return true
		}
	}

	status := cluster.Status.Rollout

	return status != nil && status.Policy == policy.Name && status.State != ""
}

// othersOf returns the other policies of the namespace; nil stands for one that cannot be parsed.
func othersOf(all []v1alpha1.OmniRolloutPolicy, self *v1alpha1.OmniRolloutPolicy) []*rollout.Policy {
	var others []*rollout.Policy

	for i := range all {
		if all[i].Name == self.Name {
			continue
		}

		policy, _ := rollout.New(&all[i])
		others = append(others, policy)
	}

	return others
}

// isSelectedBy reports whether one of the policies may select a cluster.
func isSelectedBy(policies []*rollout.Policy, cluster *v1alpha1.OmniCluster) bool {
	return slices.ContainsFunc(policies, func(policy *rollout.Policy) bool { return policy.MaySelect(cluster) })
}

// gather is how long a policy waits for further changes of its clusters before it is reconciled: a fleet changes all
// the time during a rollout, and each run reads all of it.
const gather = time.Second

// Options are what the controller needs besides the manager. All are required except Skew and Now.
type Options struct {
	// Objects and Rollouts receive the metrics.
	Objects  *metrics.Objects
	Rollouts *metrics.Rollouts
	// Well says which clusters this process has found to run as their statuses say.
	Well *hubs.Well
	// Concurrency is the number of policies that are reconciled at the same time.
	Concurrency int
	// Skew returns how far the clock of an API server is ahead of ours. Nil: not at all.
	Skew skew.Comparison
	// Now replaces time.Now.
	Now func() time.Time
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, options Options) error {
	r := newReconciler(mgr.GetClient(), mgr.GetEventRecorder("omni-controller"), options)

	return builder.ControllerManagedBy(mgr).
		Named("omnirolloutpolicy").
		For(&v1alpha1.OmniRolloutPolicy{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&v1alpha1.OmniCluster{}, r.ofNamespace()).
		Watches(&v1alpha1.OmniRolloutPolicy{}, r.ofNamespace(), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(options.Well.Source(r.policiesOf)).
		WithOptions(controller.Options{MaxConcurrentReconciles: options.Concurrency, RateLimiter: loop.RateLimiter()}).
		Complete(loop.New(r.kind(), loop.Settings{Client: mgr.GetClient(), Events: r.events}))
}

// policiesOf returns the policies of a namespace.
func (r *reconciler) policiesOf(ctx context.Context, namespace string) []reconcile.Request {
	return index.Requests(ctx, r.client, &v1alpha1.OmniRolloutPolicyList{}, client.InNamespace(namespace))
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// ofNamespace enqueues the policies of a changed object's namespace, after a moment: its clusters are theirs, and what
// one policy selects is in conflict with another.
func (r *reconciler) ofNamespace() handler.EventHandler {
	later := func(ctx context.Context, q queue, object client.Object) {
		if object == nil {
			return
		}

		for _, policy := range r.policiesOf(ctx, object.GetNamespace()) {
			q.AddAfter(policy, gather)
		}
	}

	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { later(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { later(ctx, q, e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { later(ctx, q, e.Object) },
	}
}
