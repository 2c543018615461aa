package omnicluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

// gate is the OmniRolloutPolicy that a run found for its cluster; nil if there is none.
type gate struct {
	policy   *rollout.Policy // nil if it cannot be read, or two select the cluster
	name     string
	conflict []string // the policies, if more than one selects the cluster
	unusable error    // why the policy cannot be read
	left     bool     // the policy held changes before, and does not select the cluster any more
	governed bool
}

// holds reports whether changes may have to wait.
func (g *gate) holds() bool { return g != nil }

// findGate finds the policy that selects the cluster, or the one that holds changes of it since it did.
func (r *reconciler) findGate(ctx context.Context, s *scope) (*gate, error) {
	if !r.options.Rollouts {
		return nil, nil //nolint:nilnil // no gate
	}

	list := &v1alpha1.OmniRolloutPolicyList{}
	if err := r.client.List(ctx, list, client.InNamespace(s.cluster.Namespace)); err != nil {
		return nil, fmt.Errorf("list the rollout policies: %w", err)
	}

	found := &gate{governed: isGoverned(s)}

	var before *v1alpha1.OmniRolloutPolicy

	for i := range list.Items {
		object := &list.Items[i]

		policy, err := rollout.New(object)

		switch {
		case err != nil || policy.Selects(s.cluster):
			found.policy, found.unusable, found.name = policy, err, object.Name
			found.conflict = append(found.conflict, object.Name)
		case s.cluster.Status.Rollout != nil && s.cluster.Status.Rollout.Policy == object.Name:
			before = object
		}
	}

	switch {
	case len(found.conflict) > 1:
		found.policy, found.name = nil, ""

		return found, nil
	case len(found.conflict) == 1:
		found.conflict = nil

		return found, nil
	case before != nil && s.cluster.Status.Rollout.State != "":
		found.name, found.left = before.Name, true
		found.policy, found.unusable = rollout.New(before)

		return found, nil
	default:
		return nil, nil //nolint:nilnil // no gate
	}
}

// isGoverned reports whether the changes of a cluster wait for their turn: from when it was Ready for the first time. One
// that a policy selects only now counts if it ran before, and one that was adopted does at once.
func isGoverned(s *scope) bool {
	status := s.cluster.Status

	switch {
	case status.Rollout != nil && status.Rollout.Governed, s.seen.adopting, status.Adopting,
		apimeta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady):
		return true
	case status.Rollout != nil && status.Rollout.Policy != "":
		return false
	default:
		return status.OmniClusterID != "" && !status.Starting
	}
}

// gateFacts are what consent has to know of the policy.
func (r *reconciler) gateFacts(s *scope) consent.Gate {
	if s.gate == nil {
		return consent.Gate{}
	}

	g := s.gate
	facts := consent.Gate{
		Policy: g.name, OnlyBefore: g.left, Governed: g.governed, Override: overrideOf(s.cluster), Place: fmt.Sprintf("OmniRolloutPolicy %q", g.name),
		Gates: func(v1alpha1.ChangeKind) bool { return true },
		Turn:  consent.Turn{Failed: upgradeFailed(s.cluster), ReadyTime: r.options.RolloutReadyTime},
	}
	facts.Turn.Healthy, facts.Turn.Since = rollout.Healthy(s.cluster)

	switch {
	case len(g.conflict) > 1:
		facts.Place = ""
		facts.Judge = waitFor(v1alpha1.ReasonPolicyConflict, fmt.Sprintf("the OmniRolloutPolicies %s select the cluster: change the selector of one of them",
			strings.Join(g.conflict, ", ")))

		return facts
	case g.policy == nil:
		facts.Judge = waitFor(v1alpha1.ReasonPolicyNotReady, fmt.Sprintf("the policy cannot be used: %v", g.unusable))

		return facts
	}

	facts.Gates, facts.Turn.Deadline = g.policy.Gates, g.policy.Deadline()
	facts.Ticket = ticketOf(g.policy.Object, s.cluster)

	if g.left {
		facts.Judge = waitFor(v1alpha1.ReasonLeftPolicy, "the policy does not select the cluster any more: let another one select it, or override")

		return facts
	}

	if stage := g.policy.StageOf(s.cluster); stage >= 0 {
		facts.Stage = g.policy.Object.Spec.Stages[stage].Name
		facts.Place += ", " + g.policy.StageName(stage)
	}

	facts.Judge = func(status v1alpha1.OmniClusterRollout) consent.Wait { return r.judge(s, g.policy, status) }

	return facts
}

func waitFor(reason, message string) func(v1alpha1.OmniClusterRollout) consent.Wait {
	return func(v1alpha1.OmniClusterRollout) consent.Wait { return consent.Wait{Reason: reason, Message: message} }
}

// judge asks the policy what the changes wait for.
func (r *reconciler) judge(s *scope, policy *rollout.Policy, status v1alpha1.OmniClusterRollout) consent.Wait {
	member := policy.MemberOf(s.cluster)
	member.Rollout = status

	verdict := policy.Judge(member, r.options.Now())
	wait := consent.Wait{Reason: verdict.Reason, Message: verdict.Message}

	if !verdict.NotBefore.IsZero() {
		wait.NotBefore = &metav1.Time{Time: verdict.NotBefore.UTC()}
	}

	return wait
}

// ticketOf is the ticket that a policy's status has for a cluster; nil if it has none.
func ticketOf(policy *v1alpha1.OmniRolloutPolicy, cluster *v1alpha1.OmniCluster) *v1alpha1.RolloutTicket {
	for _, ticket := range policy.Status.Admitted {
		if ticket.Cluster == cluster.Name && ticket.UID == string(cluster.UID) {
			return &ticket
		}
	}

	return nil
}

// isOfStage reports whether a cluster is still in the stage that its ticket counts for.
func isOfStage(policy *rollout.Policy, ticket v1alpha1.RolloutTicket, cluster *v1alpha1.OmniCluster) bool {
	number := policy.StageOf(cluster)

	return number >= 0 && policy.Object.Spec.Stages[number].Name == ticket.Stage
}

// overrideOf is the hash that the annotation rollout-override lets begin.
func overrideOf(cluster *v1alpha1.OmniCluster) string {
	hash, _, _ := strings.Cut(cluster.Annotations[v1alpha1.AnnotationRolloutOverride], " ")

	return hash
}

// upgradeFailed is what Omni says of an upgrade that it gave up; empty if it gave none up.
func upgradeFailed(cluster *v1alpha1.OmniCluster) string {
	available := apimeta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionAvailable)
	if available == nil || available.Reason != v1alpha1.ReasonUpgradeFailed {
		return ""
	}

	return v1alpha1.ReasonUpgradeFailed + ": " + available.Message
}

// isTurn asks past the cache whether the changes that are about to be made still may begin: by the ticket, or by the
// override.
func (r *reconciler) isTurn(ctx context.Context, s *scope, decision consent.Decision) (bool, error) {
	status := decision.Rollout()

	now := &v1alpha1.OmniCluster{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(s.cluster), now); err != nil {
		return false, client.IgnoreNotFound(err)
	}

	if now.UID != s.cluster.UID || now.Generation != s.cluster.Generation {
		return false, nil
	}

	if overrideOf(now) == status.Hash {
		return true, nil
	}

	object := &v1alpha1.OmniRolloutPolicy{}

	err := r.live.Get(ctx, client.ObjectKey{Namespace: s.cluster.Namespace, Name: status.Policy}, object)
	if apierrors.IsNotFound(err) {
		return false, nil
	}

	if err != nil {
		return false, fmt.Errorf("read OmniRolloutPolicy %q again: %w", status.Policy, err)
	}

	policy, err := rollout.New(object)
	if err != nil {
		return false, nil //nolint:nilerr // the next run says so
	}

	ticket := ticketOf(object, s.cluster)
	if ticket == nil || ticket.Hash != status.Hash || rollout.IsUsed(*ticket, *status) {
		return false, nil
	}

	// What has begun goes on, whatever the policy says since.
	return decision.HasBegun() || policy.Selects(now) && isOfStage(policy, *ticket, now) && r.judge(s, policy, *status).Reason == "", nil
}

// marks are the conditions that exist only while they are true.
func (s *scope) marks() []loop.Mark {
	if s.synced == nil {
		return nil // what was found last stays
	}

	reason, message := s.synced.Held()

	return []loop.Mark{{Condition: v1alpha1.ConditionHeld, On: reason != "", Reason: reason, Message: message}}
}

// turnDue is in how long a cluster has to be looked at because of its turn: when changes may begin, and when a turn may be
// over.
func (r *reconciler) turnDue(cluster *v1alpha1.OmniCluster) time.Duration {
	status := cluster.Status.Rollout
	if status == nil {
		return 0
	}

	var due time.Time

	switch status.State {
	case v1alpha1.RolloutHeld:
		if status.NotBefore != nil {
			due = status.NotBefore.Time
		}
	case v1alpha1.RolloutAdmitted:
		if healthy, since := rollout.Healthy(cluster); healthy {
			due = since.Add(r.options.RolloutReadyTime)
		}
	case v1alpha1.RolloutFailed:
	}

	if due.IsZero() {
		return 0
	}

	return max(due.Sub(r.options.Now()), time.Second)
}

// announceTurn tells of what became of the cluster's turn.
func (r *reconciler) announceTurn(cluster *v1alpha1.OmniCluster, before, after *v1alpha1.OmniClusterRollout) {
	was, is := stateOf(before), stateOf(after)
	if after == nil {
		return
	}

	if failure := after.Failure; failure != nil && (before == nil || before.Failure == nil || before.Failure.Time != failure.Time) {
		r.events.Eventf(cluster, nil, corev1.EventTypeWarning, "RolloutFailed", "Rollout", "%s", failure.Message)
	}

	if was == is && (before == nil || before.Hash == after.Hash) {
		return
	}

	switch is {
	case v1alpha1.RolloutHeld:
		if was != is {
			r.events.Eventf(cluster, nil, corev1.EventTypeNormal, "Held", "Rollout", "changes wait for their turn: %s", after.Reason)
		}
	case v1alpha1.RolloutAdmitted:
		reason, note := "Admitted", "changes may begin"
		if overrideOf(cluster) == after.Hash {
			reason, note = "RolloutOverridden", "changes begin out of turn: "+overrideText(after)
			r.options.Overrides.CountOverride(types.NamespacedName{Namespace: cluster.Namespace, Name: after.Policy})
		}

		r.events.Eventf(cluster, nil, corev1.EventTypeNormal, reason, "Rollout", "%s", note)
	case v1alpha1.RolloutFailed:
	}
}

func overrideText(status *v1alpha1.OmniClusterRollout) string {
	if status.Override == nil {
		return "by the annotation " + v1alpha1.AnnotationRolloutOverride
	}

	return status.Override.User + ": " + status.Override.Reason
}

func stateOf(status *v1alpha1.OmniClusterRollout) v1alpha1.RolloutState {
	if status == nil {
		return ""
	}

	return status.State
}
