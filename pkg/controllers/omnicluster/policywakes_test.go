package omnicluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// prodPolicy selects clusters of the tier prod, and has given a ticket to the cluster prod.
func prodPolicy(changes ...func(*v1alpha1.OmniRolloutPolicy)) *v1alpha1.OmniRolloutPolicy {
	policy := &v1alpha1.OmniRolloutPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: "production", Generation: 2},
		Spec: v1alpha1.OmniRolloutPolicySpec{
			ClusterSelector: &v1alpha1.ClusterSelector{MatchLabels: map[string]string{"tier": "prod"}},
			Stages:          []v1alpha1.RolloutStage{{Name: "all"}},
		},
		Status: v1alpha1.OmniRolloutPolicyStatus{
			ReconcileStatus: v1alpha1.ReconcileStatus{ObservedGeneration: 2},
			Stages:          []v1alpha1.RolloutStageStatus{{Name: "all", Clusters: 2}},
			Admitted:        []v1alpha1.RolloutTicket{{Cluster: "prod", UID: "uid-prod", Stage: "all", Hash: "h"}},
		},
	}
	for _, change := range changes {
		change(policy)
	}

	return policy
}

func admits(tickets ...v1alpha1.RolloutTicket) func(*v1alpha1.OmniRolloutPolicy) {
	return func(p *v1alpha1.OmniRolloutPolicy) { p.Status.Admitted = tickets }
}

// fleetOfPolicies has clusters of the tiers prod and canary, one that the policy held before, and one elsewhere.
func fleetOfPolicies(t *testing.T) *Mapper {
	t.Helper()

	var fleet []*v1alpha1.OmniCluster

	for _, name := range []string{"prod", "canary", "before", "elsewhere"} {
		cluster := newCluster()
		cluster.Name, cluster.Labels = name, map[string]string{"tier": name}
		fleet = append(fleet, cluster)
	}

	fleet[2].Status.Rollout = &v1alpha1.OmniClusterRollout{Policy: "production"}
	fleet[3].Namespace, fleet[3].Labels = "elsewhere", fleet[0].Labels

	return newMapper(t, fleet[0], fleet[1], fleet[2], fleet[3])
}

// woken returns the clusters that an event wakes.
func woken(t *testing.T, wake func(queue)) string {
	t.Helper()

	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()

	wake(q)

	var requests []reconcile.Request

	for q.Len() > 0 {
		request, _ := q.Get()
		requests = append(requests, request)
	}

	return strings.Join(names(requests), " ")
}

const (
	ofPolicy = "team/before team/prod"
	everyone = "team/before team/canary team/prod"
)

// TestPolicyWakesClusters: a policy that comes or goes wakes the clusters that it selects, and those whose status names
// it. One that cannot be read may be for any cluster.
func TestPolicyWakesClusters(t *testing.T) {
	handler := fleetOfPolicies(t).EnqueueForPolicy()
	unreadable := prodPolicy(func(p *v1alpha1.OmniRolloutPolicy) { p.Spec.ClusterSelector.MatchLabels = map[string]string{"a b": ""} })

	for name, test := range map[string]struct {
		wake func(queue)
		want string
	}{
		"made":                   {func(q queue) { handler.Create(t.Context(), event.CreateEvent{Object: prodPolicy()}, q) }, ofPolicy},
		"deleted":                {func(q queue) { handler.Delete(t.Context(), event.DeleteEvent{Object: prodPolicy()}, q) }, ofPolicy},
		"made, and not readable": {func(q queue) { handler.Create(t.Context(), event.CreateEvent{Object: unreadable}, q) }, everyone},
		"not a policy":           {func(q queue) { handler.Create(t.Context(), event.CreateEvent{Object: newCluster()}, q) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, woken(t, test.wake)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPolicyUpdateWakes: only what lets others begin wakes all clusters of a policy. A fleet that waits is not read
// again for each number in the status.
func TestPolicyUpdateWakes(t *testing.T) {
	handler := fleetOfPolicies(t).EnqueueForPolicy()
	promoted := metav1.NewTime(time.Date(2026, 11, 28, 6, 0, 0, 0, time.UTC))
	condition := func(name string) func(*v1alpha1.OmniRolloutPolicy) {
		return func(p *v1alpha1.OmniRolloutPolicy) {
			p.Status.Conditions = []metav1.Condition{{Type: name, Status: metav1.ConditionTrue}}
		}
	}
	stage := func(change func(*v1alpha1.RolloutStageStatus)) func(*v1alpha1.OmniRolloutPolicy) {
		return func(p *v1alpha1.OmniRolloutPolicy) { change(&p.Status.Stages[0]) }
	}

	for name, test := range map[string]struct {
		before, after func(*v1alpha1.OmniRolloutPolicy)
		want          string
	}{
		"nothing": {want: ""},
		"a spec that its controller has not looked at": {after: func(p *v1alpha1.OmniRolloutPolicy) { p.Generation, p.Spec.Hold = 3, true }},
		"another selector": {after: func(p *v1alpha1.OmniRolloutPolicy) {
			p.Generation, p.Spec.ClusterSelector.MatchLabels = 3, map[string]string{"tier": "canary"}
		}, want: "team/prod"},
		"another selector, looked at in the same event": {after: func(p *v1alpha1.OmniRolloutPolicy) {
			p.Generation, p.Status.ObservedGeneration, p.Spec.ClusterSelector.MatchLabels = 3, 3, map[string]string{"tier": "canary"}
		}, want: everyone},
		"readable again": {
			before: func(p *v1alpha1.OmniRolloutPolicy) { p.Spec.ClusterSelector.MatchLabels = map[string]string{"a b": ""} },
			after:  func(p *v1alpha1.OmniRolloutPolicy) { p.Generation = 3 },
			want:   "team/before team/canary",
		},
		"not readable any more": {after: func(p *v1alpha1.OmniRolloutPolicy) {
			p.Generation, p.Spec.ClusterSelector.MatchLabels = 3, map[string]string{"a b": ""}
		}},
		"a spec that it has looked at": {after: func(p *v1alpha1.OmniRolloutPolicy) { p.Status.ObservedGeneration = 3 }, want: ofPolicy},
		"numbers": {after: stage(func(s *v1alpha1.RolloutStageStatus) {
			s.Clusters, s.Held, s.Admitted, s.Failed, s.NotReady = 9, 9, 9, 9, 9
			s.Soaking = []v1alpha1.SoakingVersion{{Kubernetes: "v1.36.1", Clusters: 1, Needed: 2}}
		})},
		"stalled":        {after: condition(v1alpha1.ConditionStalled), want: ofPolicy},
		"no longer":      {before: condition(v1alpha1.ConditionStalled), want: ofPolicy},
		"stopped":        {after: condition(v1alpha1.ConditionRolloutStopped), want: ofPolicy},
		"goes on again":  {before: condition(v1alpha1.ConditionRolloutStopped), want: ofPolicy},
		"not so Ready":   {after: condition(v1alpha1.ConditionReady)},
		"proved":         {after: stage(func(s *v1alpha1.RolloutStageStatus) { s.Qualified = []v1alpha1.QualifiedVersion{{Talos: "v1.13.3"}} }), want: ofPolicy},
		"promoted":       {after: stage(func(s *v1alpha1.RolloutStageStatus) { s.PromotedUntil = &promoted }), want: ofPolicy},
		"renamed":        {after: stage(func(s *v1alpha1.RolloutStageStatus) { s.Name = "rest" }), want: ofPolicy},
		"a ticket more":  {after: admits(v1alpha1.RolloutTicket{Cluster: "canary"}, prodPolicy().Status.Admitted[0]), want: "team/canary"},
		"a ticket less":  {after: admits(), want: "team/prod"},
		"another ticket": {after: func(p *v1alpha1.OmniRolloutPolicy) { p.Status.Admitted[0].Hash = "h2" }, want: "team/prod"},
		"a ticket for another": {
			after: admits(v1alpha1.RolloutTicket{Cluster: "canary"}), want: "team/canary team/prod",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := prodPolicy(), prodPolicy()
			if test.before != nil {
				test.before(before)
			}

			if test.after != nil {
				test.after(after)
			}

			got := woken(t, func(q queue) { handler.Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q) })
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTicketsSort: the clusters are woken in a fixed order, each once.
func TestTicketsSort(t *testing.T) {
	before := prodPolicy(admits(v1alpha1.RolloutTicket{Cluster: "b"}, v1alpha1.RolloutTicket{Cluster: "c"}))
	after := prodPolicy(admits(v1alpha1.RolloutTicket{Cluster: "a"}, v1alpha1.RolloutTicket{Cluster: "b", Hash: "h"}))

	if got := ticketsChanged(before, after); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("changed: %v", got)
	}
}
