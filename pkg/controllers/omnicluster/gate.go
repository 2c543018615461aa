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

// selection has the OmniRolloutPolicies that concern a cluster.
type selection struct {
	policy   *rollout.Policy // nil if it cannot be read, or two select the cluster
	name     string          // of the policy, or of one of several
	conflict []string        // the policies, if more than one selects the cluster
	unusable error           // why the policy cannot be read
	left     bool            // the policy held changes before, and does not select the cluster any more
	revision string          // differs if any of this does; empty if no policy concerns the cluster
}

// findGate returns the conditions under which the changes of the run's cluster may begin. They are those of the policy
// that selects the cluster, or of the policy that no longer selects it but still holds changes of it.
func (r *reconciler) findGate(ctx context.Context, s *scope) (consent.Gate, error) {
	if !r.options.Rollouts {
		return consent.Gate{}, nil
	}

	found, err := findSelection(ctx, s.cluster, r.client)
	if err != nil || found.revision == "" {
		return consent.Gate{}, err
	}

	gate := r.gateOf(found, s.cluster)
	gate.Governed = isGoverned(s)

	return gate, nil
}

// findSelection returns the policies that concern a cluster, as the cache or the API server has them.
func findSelection(ctx context.Context, cluster *v1alpha1.OmniCluster, from client.Reader) (selection, error) {
	list := &v1alpha1.OmniRolloutPolicyList{}
	if err := from.List(ctx, list, client.InNamespace(cluster.Namespace)); err != nil {
		return selection{}, fmt.Errorf("list the rollout policies: %w", err)
	}

	return selectionOf(list.Items, cluster), nil
}

// selectionOf returns the policies that concern a cluster.
func selectionOf(policies []v1alpha1.OmniRolloutPolicy, cluster *v1alpha1.OmniCluster) selection {
	var (
		found  selection
		names  []string
		before *v1alpha1.OmniRolloutPolicy
	)

	for i := range policies {
		object := &policies[i]

		policy, err := rollout.New(object)

		switch {
		case err != nil || policy.Selects(cluster):
			found.policy, found.unusable, found.name, found.revision = policy, err, object.Name, revisionOf(object)
			names = append(names, object.Name)
		case cluster.Status.Rollout != nil && cluster.Status.Rollout.Policy == object.Name:
			before = object
		}
	}

	switch {
	case len(names) > 1:
		return conflictOf(names, cluster)
	case len(names) == 0 && before != nil && consent.HoldsChanges(cluster.Status.Rollout):
		found.name, found.left, found.revision = before.Name, true, "left "+revisionOf(before)
		found.policy, found.unusable = rollout.New(before)
	}

	return found
}

// conflictOf returns the selection of several policies. The one that held changes before keeps them: they stay held if it is
// the next to go, and it cannot be deleted meanwhile.
func conflictOf(names []string, cluster *v1alpha1.OmniCluster) selection {
	slices.Sort(names) // the cache has no order

	name := names[0]
	if held := cluster.Status.Rollout; held != nil && slices.Contains(names, held.Policy) {
		name = held.Policy
	}

	return selection{name: name, conflict: names, revision: strings.Join(names, ", ")}
}

func revisionOf(policy *v1alpha1.OmniRolloutPolicy) string {
	return fmt.Sprintf("%s/%d", policy.UID, policy.Generation)
}

// isGoverned reports whether the changes of a cluster wait for their turn: from the time when it was Ready first. A
// cluster that ran before a policy selected it is governed at once, and so is an adopted one, and one that Omni has as
// ours although the status does not say where: the status was lost.
func isGoverned(s *scope) bool {
	status := s.cluster.Status

	switch {
	case s.seen != nil && status.Endpoint == "" && s.owns(s.seen.live):
		return true
	case status.Rollout != nil && status.Rollout.Governed, s.seen != nil && s.seen.adopting, status.Adopting,
		apimeta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady):
		return true
	case status.Rollout != nil && status.Rollout.Policy != "":
		return false
	default:
		return status.OmniClusterID != "" && !status.Starting
	}
}

// gateOf returns the conditions of the policies that concern a cluster.
func (r *reconciler) gateOf(found selection, cluster *v1alpha1.OmniCluster) consent.Gate {
	gate := consent.Gate{
		Policy: found.name, Revision: found.revision, OnlyBefore: found.left, Place: fmt.Sprintf("OmniRolloutPolicy %q", found.name),
		Gates: func(v1alpha1.ChangeKind) bool { return true },
		Turn:  consent.Turn{Started: r.started, Tried: r.triedAt(cluster), ReadyTime: r.options.RolloutReadyTime},
	}
	gate.Turn.Healthy, gate.Turn.Since = r.healthy(cluster)

	switch {
	case len(found.conflict) > 0:
		gate.Place = ""
		gate.Judge = waitFor(v1alpha1.ReasonPolicyConflict, fmt.Sprintf("the OmniRolloutPolicies %s select the cluster: change the selector of one of them",
			strings.Join(found.conflict, ", ")))

		return gate
	case found.policy == nil:
		gate.Judge = waitFor(v1alpha1.ReasonPolicyNotReady, fmt.Sprintf("the policy cannot be used: %v", found.unusable))

		return gate
	}

	gate.Gates, gate.Turn.Deadline = found.policy.Gates, rollout.DeadlineOf(found.policy.Object)
	gate.Ticket = ticketOf(found.policy.Object, cluster)

	if found.left {
		gate.Judge = waitFor(v1alpha1.ReasonLeftPolicy, "the policy does not select the cluster any more: let another one select it, or override")

		return gate
	}

	if stage := found.policy.StageOf(cluster); stage >= 0 {
		gate.Stage = found.policy.Object.Spec.Stages[stage].Name
		gate.Place += ", " + found.policy.StageName(stage)
	}

	gate.Judge = func(status v1alpha1.OmniClusterRollout) consent.Wait { return r.judge(cluster, found.policy, status) }

	return gate
}

func waitFor(reason, message string) func(v1alpha1.OmniClusterRollout) consent.Wait {
	return func(v1alpha1.OmniClusterRollout) consent.Wait { return consent.Wait{Reason: reason, Message: message} }
}

// judge returns what the changes wait for by the policy.
func (r *reconciler) judge(cluster *v1alpha1.OmniCluster, policy *rollout.Policy, status v1alpha1.OmniClusterRollout) consent.Wait {
	member := policy.MemberOf(cluster)
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

// marks returns the conditions that exist only while they are true.
func (s *scope) marks() []loop.Mark {
	if s.synced == nil {
		return nil // what was found last stays
	}

	reason, message := s.synced.Held()

	return []loop.Mark{{Condition: v1alpha1.ConditionHeld, On: reason != "", Reason: reason, Message: message}}
}
