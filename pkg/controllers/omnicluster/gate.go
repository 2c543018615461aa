package omnicluster

import (
	"context"
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

// findGate returns the conditions under which the changes of the run's cluster may begin. They are those of the policy
// that selects the cluster, or of the policy that no longer selects it but still holds changes of it.
func (r *reconciler) findGate(ctx context.Context, s *scope) (consent.Gate, error) {
	if !r.options.Rollouts {
		return consent.Gate{}, nil
	}

	found, err := findSelection(ctx, s.cluster, r.client)
	if err != nil || found.Revision == "" {
		return consent.Gate{}, err
	}

	gate := r.gateOf(found, s.cluster)
	gate.Governed = isGoverned(s)

	return gate, nil
}

// findSelection returns the policies that concern a cluster, as the cache or the API server has them.
func findSelection(ctx context.Context, cluster *v1alpha1.OmniCluster, from client.Reader) (rollout.Selection, error) {
	list := &v1alpha1.OmniRolloutPolicyList{}
	if err := from.List(ctx, list, client.InNamespace(cluster.Namespace)); err != nil {
		return rollout.Selection{}, fmt.Errorf("list the rollout policies: %w", err)
	}

	return rollout.SelectionOf(list.Items, cluster), nil
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
func (r *reconciler) gateOf(found rollout.Selection, cluster *v1alpha1.OmniCluster) consent.Gate {
	gate := consent.Gate{
		Policy: found.Name, Revision: found.Revision, OnlyBefore: found.Left, Place: fmt.Sprintf("OmniRolloutPolicy %q", found.Name),
		Gates: func(v1alpha1.ChangeKind) bool { return true },
		Turn: consent.Turn{Started: byClock(r.started, r.options.Now()), Tried: r.triedAt(cluster), ReadyTime: r.options.RolloutReadyTime,
			ClocksDiffer: r.options.Skew.Now().TooLarge()},
	}
	gate.Turn.Healthy, gate.Turn.Since = r.healthy(cluster)

	// A turn ends, or is given back, by the policy that gave it, also while another one selects the cluster, too.
	if found.Object != nil {
		gate.Turn.Deadline, gate.Ticket = rollout.DeadlineOf(found.Object), ticketOf(found.Object, cluster)
	}

	switch {
	case len(found.Conflict) > 0:
		gate.Place = ""
		gate.Judge = waitFor(v1alpha1.ReasonPolicyConflict, fmt.Sprintf("the OmniRolloutPolicies %s select the cluster: change the selector of one of them",
			strings.Join(found.Conflict, ", ")))

		return gate
	case found.Policy == nil:
		gate.Judge = waitFor(v1alpha1.ReasonPolicyNotReady, fmt.Sprintf("the policy cannot be used: %v", found.Unreadable))

		return gate
	}

	gate.Gates = found.Policy.Gates

	if found.Left {
		gate.Judge = waitFor(v1alpha1.ReasonLeftPolicy, "the policy does not select the cluster any more: let another one select it, or override")

		return gate
	}

	if stage := found.Policy.StageOf(cluster); stage >= 0 {
		gate.Stage = found.Policy.Object.Spec.Stages[stage].Name
		gate.Place += ", " + found.Policy.StageName(stage)
	}

	gate.Judge = func(status v1alpha1.OmniClusterRollout) consent.Wait { return r.judge(cluster, found.Policy, status) }

	return gate
}

func waitFor(reason, message string) func(v1alpha1.OmniClusterRollout) consent.Wait {
	return func(v1alpha1.OmniClusterRollout) consent.Wait { return consent.Wait{Reason: reason, Message: message} }
}

// judge returns what the changes wait for by the policy. By a wrong clock no window and no freeze can be judged: the policy's own
// controller may not have noticed yet, and gave its tickets by that clock perhaps.
func (r *reconciler) judge(cluster *v1alpha1.OmniCluster, policy *rollout.Policy, status v1alpha1.OmniClusterRollout) consent.Wait {
	if differ := r.options.Skew.Now(); differ.TooLarge() {
		return consent.Wait{Reason: v1alpha1.ReasonPolicyNotReady, Message: differ.String() + ": nothing begins until they have agreed for a minute"}
	}

	member := policy.MemberOf(cluster, r.options.Well.Confirms(cluster))
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
