package omnicluster

import (
	"fmt"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

func isControlPlane(set *v1alpha1.MachineSetStatus) bool {
	return set.Name == v1alpha1.ControlPlaneSetName
}

func isWorkerSet(set *v1alpha1.MachineSetStatus) bool { return !isControlPlane(set) }

// machines prints "healthy/requested" machines, over the sets that counts selects; nothing until Omni has reported a
// status.
func machines(o *v1alpha1.OmniCluster, counts func(*v1alpha1.MachineSetStatus) bool) string {
	if o.Status.Omni == nil {
		return kit.OrNone("")
	}

	var healthy, requested int32

	for i := range o.Status.Omni.MachineSets {
		if set := &o.Status.Omni.MachineSets[i]; counts(set) {
			healthy += set.Machines.Healthy
			requested += set.Machines.Requested
		}
	}

	return fmt.Sprintf("%d/%d", healthy, requested)
}

// version prints the version that is asked for, behind the one that Omni was told to run if that is another: an upgrade
// waits for its turn, or was refused.
func version(o *v1alpha1.OmniCluster, reported func(*v1alpha1.OmniClusterRemoteStatus) string, wanted string) string {
	if o.Status.Omni == nil {
		return wanted
	}

	if runs := reported(o.Status.Omni); runs != "" && runs != wanted {
		return runs + "->" + wanted
	}

	return wanted
}

// plan counts creates, updates and destroys, and how many of them remove machines. It prints nothing for what
// is kept only to remember approvals.
func plan(p *v1alpha1.OmniClusterPlan) string {
	if !p.IsPlan() {
		return kit.OrNone("")
	}

	text := fmt.Sprintf("+%d ~%d -%d", p.Creates, p.Updates, p.Destroys)
	if p.Destructive > 0 {
		text += fmt.Sprintf(" !%d", p.Destructive)
	}

	if p.Held > 0 {
		text += fmt.Sprintf(" h%d", p.Held)
	}

	return text
}

// held prints when changes that wait for their turn may begin, in UTC, or what they wait for.
func held(status *v1alpha1.OmniClusterRollout) string {
	switch {
	case status == nil || status.Reason == "":
		return kit.OrNone("")
	case status.NotBefore != nil:
		return words.TimeWithZone(status.NotBefore.UTC())
	default:
		return status.Reason
	}
}
