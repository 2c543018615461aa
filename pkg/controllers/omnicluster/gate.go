package omnicluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

// gate is the OmniRolloutPolicy of the run's cluster; nil if there is none.
type gate struct {
	policy   *rollout.Policy // nil if it cannot be read, or two select the cluster
	name     string
	conflict []string // the policies, if more than one selects the cluster
	unusable error    // why the policy cannot be read
	revision string   // the UID and the generation of the policy
	left     bool     // the policy held changes before, and does not select the cluster any more
	governed bool
}

// isSame reports whether two gates are the same content of the same policy.
func (g *gate) isSame(other *gate) bool {
	if g == nil || other == nil {
		return g == other
	}

	return g.revision == other.revision && g.left == other.left && slices.Equal(g.conflict, other.conflict)
}

// holds reports whether changes may have to wait.
func (g *gate) holds() bool { return g != nil }

// findGate returns the policy that selects the cluster, or the policy that no longer selects it but still holds changes
// of it. It reads the policies from the cache, or from the API server.
func (r *reconciler) findGate(ctx context.Context, s *scope, from client.Reader) (*gate, error) {
	if !r.options.Rollouts {
		return nil, nil //nolint:nilnil // no gate
	}

	list := &v1alpha1.OmniRolloutPolicyList{}
	if err := from.List(ctx, list, client.InNamespace(s.cluster.Namespace)); err != nil {
		return nil, fmt.Errorf("list the rollout policies: %w", err)
	}

	found := &gate{governed: isGoverned(s)}

	var before *v1alpha1.OmniRolloutPolicy

	for i := range list.Items {
		object := &list.Items[i]

		policy, err := rollout.New(object)

		switch {
		case err != nil || policy.Selects(s.cluster):
			found.policy, found.unusable, found.name, found.revision = policy, err, object.Name, revisionOf(object)
			found.conflict = append(found.conflict, object.Name)
		case s.cluster.Status.Rollout != nil && s.cluster.Status.Rollout.Policy == object.Name:
			before = object
		}
	}

	switch {
	case len(found.conflict) > 1:
		found.policy, found.name, found.revision = nil, "", ""

		return found, nil
	case len(found.conflict) == 1:
		found.conflict = nil

		return found, nil
	case before != nil && s.cluster.Status.Rollout.State != "":
		found.name, found.left, found.revision = before.Name, true, revisionOf(before)
		found.policy, found.unusable = rollout.New(before)

		return found, nil
	default:
		return nil, nil //nolint:nilnil // no gate
	}
}

func revisionOf(policy *v1alpha1.OmniRolloutPolicy) string {
	return fmt.Sprintf("%s/%d", policy.UID, policy.Generation)
}

// isGoverned reports whether the changes of a cluster wait for their turn: from the time when it was Ready first. A
// cluster that ran before a policy selected it is governed at once, and so is an adopted one.
func isGoverned(s *scope) bool {
	status := s.cluster.Status

	switch {
	case status.Rollout != nil && status.Rollout.Governed, s.seen != nil && s.seen.adopting, status.Adopting,
		apimeta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady):
		return true
	case status.Rollout != nil && status.Rollout.Policy != "":
		return false
	default:
		return status.OmniClusterID != "" && !status.Starting
	}
}

// gateFacts returns the facts about the policy for package consent.
func (r *reconciler) gateFacts(s *scope) consent.Gate {
	if s.gate == nil {
		return consent.Gate{}
	}

	g := s.gate
	facts := consent.Gate{
		Policy: g.name, OnlyBefore: g.left, Governed: g.governed, Override: overrideOf(s.cluster), Place: fmt.Sprintf("OmniRolloutPolicy %q", g.name),
		Gates: func(v1alpha1.ChangeKind) bool { return true },
		Turn:  consent.Turn{Failed: upgradeFailed(s.cluster), Started: r.started, ReadyTime: r.options.RolloutReadyTime},
	}
	facts.Turn.Healthy, facts.Turn.Since = r.healthy(s.cluster)

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

	facts.Gates, facts.Turn.Deadline = g.policy.Gates, rollout.DeadlineOf(g.policy.Object)
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

// judge returns what the changes wait for by the policy.
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

// ticketOf returns the cluster's ticket in the policy's status; nil if it has none.
func ticketOf(policy *v1alpha1.OmniRolloutPolicy, cluster *v1alpha1.OmniCluster) *v1alpha1.RolloutTicket {
	for _, ticket := range policy.Status.Admitted {
		if ticket.Cluster == cluster.Name && ticket.UID == string(cluster.UID) {
			return &ticket
		}
	}

	return nil
}

// overrideOf returns the hash in the annotation rollout-override.
func overrideOf(cluster *v1alpha1.OmniCluster) string {
	hash, _, _ := strings.Cut(cluster.Annotations[v1alpha1.AnnotationRolloutOverride], " ")

	return hash
}

// upgradeFailed returns Omni's message about an upgrade that it gave up; empty if it gave none up.
func upgradeFailed(cluster *v1alpha1.OmniCluster) string {
	available := apimeta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionAvailable)
	if available == nil || available.Reason != v1alpha1.ReasonUpgradeFailed {
		return ""
	}

	return v1alpha1.ReasonUpgradeFailed + ": " + available.Message
}

// marks returns the conditions that exist only while they are true.
func (s *scope) marks() []loop.Mark {
	if s.synced == nil {
		return nil // what was found last stays
	}

	reason, message := s.synced.Held()

	return []loop.Mark{{Condition: v1alpha1.ConditionHeld, On: reason != "", Reason: reason, Message: message}}
}
