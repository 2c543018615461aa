package rollout

import (
	"fmt"
	"slices"
	"strings"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Selection has the OmniRolloutPolicies of a namespace that concern a cluster.
type Selection struct {
	// Policy is the one that concerns the cluster; nil if it cannot be read, or if several select the cluster.
	Policy *Policy
	// Name is the policy's name, or that of one of several; empty if no policy concerns the cluster.
	Name string
	// Object is the policy of that name as the API has it, also if it cannot be read; nil if no policy concerns the cluster.
	Object *v1alpha1.OmniRolloutPolicy
	// Conflict has the names, sorted, if more than one policy selects the cluster.
	Conflict []string
	// Unreadable is why the policy cannot be read, as New returned it.
	Unreadable error
	// Left is set if the policy held changes of the cluster before, and does not select it any more.
	Left bool
	// Revision differs if any of this does; empty if no policy concerns the cluster.
	Revision string
}

// SelectionOf returns which of the policies of a namespace concern a cluster of it: the one that selects the cluster, or
// else the one whose changes it still holds by its status. The order of the policies does not count.
func SelectionOf(policies []v1alpha1.OmniRolloutPolicy, cluster *v1alpha1.OmniCluster) Selection {
	var (
		found    Selection
		selected []*v1alpha1.OmniRolloutPolicy
		before   *v1alpha1.OmniRolloutPolicy
	)

	for i := range policies {
		object := &policies[i]
		policy, err := New(object)

		switch {
		case policy.MaySelect(cluster):
			found = Selection{Policy: policy, Name: object.Name, Object: object, Unreadable: err, Revision: revisionOf(object)}
			selected = append(selected, object)
		case cluster.Status.Rollout != nil && cluster.Status.Rollout.Policy == object.Name:
			before = object
		}
	}

	switch {
	case len(selected) > 1:
		return conflictOf(selected, cluster)
	case len(selected) == 0 && before != nil && StillConcerns(cluster.Status.Rollout):
		found = Selection{Name: before.Name, Object: before, Left: true, Revision: "left " + revisionOf(before)}
		found.Policy, found.Unreadable = New(before)
	}

	return found
}

// conflictOf returns the selection of several policies. The one that held changes before keeps them: they stay held if it is
// the next to go, and it cannot be deleted meanwhile.
func conflictOf(policies []*v1alpha1.OmniRolloutPolicy, cluster *v1alpha1.OmniCluster) Selection {
	slices.SortFunc(policies, func(a, b *v1alpha1.OmniRolloutPolicy) int { return strings.Compare(a.Name, b.Name) }) // the cache has no order

	keeps := policies[0]

	var names []string

	for _, policy := range policies {
		names = append(names, policy.Name)

		if held := cluster.Status.Rollout; held != nil && held.Policy == policy.Name {
			keeps = policy
		}
	}

	return Selection{Name: keeps.Name, Object: keeps, Conflict: names, Revision: strings.Join(names, ", ")}
}

func revisionOf(policy *v1alpha1.OmniRolloutPolicy) string {
	return fmt.Sprintf("%s/%d", policy.UID, policy.Generation)
}

// StillConcerns reports whether something of a cluster has not ended under its policy, by its status: changes that wait or are
// at work, and also a turn that failed while the cluster is not well yet. The policy keeps such a cluster if it no longer
// selects it.
func StillConcerns(status *v1alpha1.OmniClusterRollout) bool {
	return status != nil && (status.State != "" || len(status.Changes) > 0)
}

// HoldsChanges reports whether changes of a cluster wait or are at work, by its status. After a turn that failed, none are:
// no change would begin if the policy were gone.
func HoldsChanges(status *v1alpha1.OmniClusterRollout) bool {
	if status == nil {
		return false
	}

	// Listed without a state are changes that were held, and cannot be made now for another reason.
	return status.State == v1alpha1.RolloutHeld || status.State == v1alpha1.RolloutAdmitted || len(status.Changes) > 0
}
