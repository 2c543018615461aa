package child

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// siblings are the documents of one cluster that are not being deleted.
type siblings struct {
	controlPlanes []string            // names
	sets          map[string][]string // names of OmniWorkers by worker set name
	machines      map[string][]string // names of OmniMachines by machine ID
	listed        map[string]bool     // machine IDs that a set lists
}

func newSiblings(controlPlanes []v1alpha1.OmniControlPlane, workers []v1alpha1.OmniWorkers, machines []v1alpha1.OmniMachine) siblings {
	s := siblings{sets: map[string][]string{}, machines: map[string][]string{}, listed: map[string]bool{}}

	list := func(ids []string) {
		for _, id := range ids {
			s.listed[id] = true
		}
	}

	for i := range controlPlanes {
		if o := &controlPlanes[i]; o.DeletionTimestamp.IsZero() {
			s.controlPlanes = append(s.controlPlanes, o.Name)
			list(o.Spec.MachineIDs())
		}
	}

	for i := range workers {
		if o := &workers[i]; o.DeletionTimestamp.IsZero() {
			s.sets[o.EffectiveWorkerSetName()] = append(s.sets[o.EffectiveWorkerSetName()], o.Name)
			list(o.Spec.MachineIDs())
		}
	}

	for i := range machines {
		if o := &machines[i]; o.DeletionTimestamp.IsZero() {
			s.machines[o.EffectiveMachineID()] = append(s.machines[o.EffectiveMachineID()], o.Name)
		}
	}

	return s
}

func acceptControlPlane(o *v1alpha1.OmniControlPlane, s siblings) loop.Outcome {
	if others := others(s.controlPlanes, o.Name); others != "" {
		return loop.Stall(v1alpha1.ReasonConflicting, "OmniCluster %q has one control plane, and OmniControlPlane %s names it too", o.Spec.ClusterRef.Name, others)
	}

	return accepted(o.Spec.ClusterRef.Name)
}

func acceptWorkers(o *v1alpha1.OmniWorkers, s siblings) loop.Outcome {
	if others := others(s.sets[o.EffectiveWorkerSetName()], o.Name); others != "" {
		return loop.Stall(v1alpha1.ReasonConflicting, "OmniWorkers %s has the worker set name %q too", others, o.EffectiveWorkerSetName())
	}

	return accepted(o.Spec.ClusterRef.Name)
}

func acceptMachine(o *v1alpha1.OmniMachine, s siblings) loop.Outcome {
	id := o.EffectiveMachineID()

	if others := others(s.machines[id], o.Name); others != "" {
		return loop.Stall(v1alpha1.ReasonConflicting, "OmniMachine %s describes machine %s too", others, id)
	}

	if !s.listed[id] {
		return loop.Wait(0, v1alpha1.ReasonNotListed, "no control plane or worker set of OmniCluster %q lists machine %s", o.Spec.ClusterRef.Name, id)
	}

	return accepted(o.Spec.ClusterRef.Name)
}

func accepted(cluster string) loop.Outcome {
	return loop.Continue(v1alpha1.ReasonAcceptedByCluster, "OmniCluster %q counts this document", cluster)
}

// others lists the members of a group except one, for messages.
func others(group []string, self string) string {
	var named []string

	for _, name := range slices.Sorted(slices.Values(group)) {
		if name != self {
			named = append(named, fmt.Sprintf("%q", name))
		}
	}

	return strings.Join(named, ", ")
}

// judgeSynced looks for this generation in what Omni refused, and then in what was applied last: a part that was
// applied once can be refused when it has to be made again.
func judgeSynced(object client.Object, cluster *v1alpha1.OmniCluster, refs []v1alpha1.AppliedReference) loop.Outcome {
	if message := refusal(object, cluster.Status.Refusals); message != "" {
		return loop.Stall(v1alpha1.ReasonRefused, "%s%s; OmniCluster %q tries again when this document or something of the cluster in Omni changes",
			message, heldTalos(cluster), cluster.Name)
	}

	for _, ref := range refs {
		if ref.UID == string(object.GetUID()) && ref.Generation == object.GetGeneration() {
			return loop.Continue(v1alpha1.ReasonApplied, "Omni has this generation")
		}
	}

	if held := apimeta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionHeld); held != nil && held.Status == metav1.ConditionTrue {
		return loop.Note(v1alpha1.ReasonHeld, "OmniCluster %q: %s: %s", cluster.Name, held.Reason, held.Message)
	}

	if held := heldOnPurpose(cluster); held != "" {
		return loop.Wait(0, v1alpha1.ReasonClusterOnHold, "OmniCluster %q %s", cluster.Name, held)
	}

	if settling := settlingMessage(cluster); settling != "" {
		return loop.Wait(0, v1alpha1.ReasonWaitingForSync, "OmniCluster %q: %s", cluster.Name, settling)
	}

	return loop.Wait(0, v1alpha1.ReasonWaitingForSync, "OmniCluster %q has not applied this generation yet; see its conditions", cluster.Name)
}

// settlingMessage returns what a cluster says of the changes that wait for the settle time; empty if none does. A user who has
// emptied a list by mistake looks at the set first.
func settlingMessage(cluster *v1alpha1.OmniCluster) string {
	synced := apimeta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionSynced)
	if synced == nil || synced.Status == metav1.ConditionTrue || synced.Reason != v1alpha1.ReasonWaitingToSettle {
		return ""
	}

	return synced.Message
}

const (
	// firstApplyTime is how long a document keeps its first status while its cluster is at work: from the document's creation,
	// or from the time when the cluster was Planned, if that was later. In a large new fleet that is minutes later.
	firstApplyTime = 30 * time.Second
	// queueTime is how often a document looks whether its cluster has had its first run; the cluster's status wakes it.
	queueTime = time.Minute
)

// untilFirstApply returns how long a new document keeps its first status; 0 if it does not. That it is not applied yet is
// nothing to write down while the first run of the cluster, or its first apply, is about to come: in a new fleet that would
// be a fifth of all writes.
func untilFirstApply(object loop.Object, cluster *v1alpha1.OmniCluster, synced loop.Outcome, now time.Time) time.Duration {
	if synced.Reason() != v1alpha1.ReasonWaitingForSync || object.GetReconcileStatus().ObservedGeneration > 0 {
		return 0
	}

	if cluster.Status.ObservedGeneration <= 0 {
		return queueTime
	}

	planned := apimeta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionPlanned)
	if planned == nil || planned.Status != metav1.ConditionTrue || apimeta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionStalled) {
		return 0
	}

	age := now.Sub(object.GetCreationTimestamp().Time)
	if sincePlanned := now.Sub(planned.LastTransitionTime.Time); sincePlanned >= 0 {
		age = min(age, sincePlanned)
	}

	if age < 0 { // the clocks differ
		return 0
	}

	return max(firstApplyTime-age, 0)
}

// refusal returns Omni's reason for refusing a part of this generation; empty if it refused none.
func refusal(object client.Object, refusals []v1alpha1.RefusedChange) string {
	for _, one := range refusals {
		for _, document := range one.Documents {
			if document.UID == string(object.GetUID()) && document.Generation == object.GetGeneration() {
				return one.Message
			}
		}
	}

	return ""
}

// heldOnPurpose returns why a cluster applies nothing before a person acts; empty if nobody has to.
func heldOnPurpose(cluster *v1alpha1.OmniCluster) string {
	if cluster.Spec.Suspend {
		return "is suspended: it applies this generation when spec.suspend is false again"
	}

	stalled := apimeta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionStalled)
	if stalled == nil || stalled.Status != metav1.ConditionTrue {
		return ""
	}

	switch stalled.Reason {
	case v1alpha1.ReasonAwaitingApproval:
		return "waits for the approval of its plan; its condition Stalled names the changes and the command that approves them"
	case v1alpha1.ReasonObserving:
		return "only observes: it applies this generation when spec.changePolicy is Apply or ConfirmDestructive"
	}

	return ""
}

// judgeSet returns the outcome for the machines of a set, from the cluster's status.
func judgeSet(cluster *v1alpha1.OmniCluster, name string) loop.Outcome {
	set := findSet(cluster, name)

	switch {
	case set == nil:
		return loop.Wait(0, v1alpha1.ReasonMachinesNotReady, "Omni says nothing about machine set %q yet", name)
	case !set.Ready:
		return loop.Wait(0, v1alpha1.ReasonMachinesNotReady, "Omni does not say that the set is ready: it is %s, with %d of %d machines healthy%s%s%s",
			phase(set.Phase), set.Machines.Healthy, set.Machines.Requested, missingMachines(set.Machines, cluster.Name), lockedUpdates(set.LockedUpdates), heldTalos(cluster))
	case set.Machines.Requested == 0:
		return loop.Continue(v1alpha1.ReasonMachinesReady, "the set has no machine, and is to have none%s%s", lockedUpdates(set.LockedUpdates), heldTalos(cluster))
	default:
		return loop.Continue(v1alpha1.ReasonMachinesReady, "%d of %d machines are healthy%s%s",
			set.Machines.Healthy, set.Machines.Requested, lockedUpdates(set.LockedUpdates), heldTalos(cluster))
	}
}

// lockedUpdates returns the message about updates that wait for a locked machine: they do not continue by themselves.
func lockedUpdates(count int32) string {
	if count == 0 {
		return ""
	}

	return fmt.Sprintf("; %d with a pending update are locked: unlock them in Omni, or set locked: false in their OmniMachine", count)
}

// heldTalos returns the message about a Talos version that waits for its turn. Machines that boot the new version already do
// not become part of a cluster that runs the old one, and without both versions nobody sees why.
func heldTalos(cluster *v1alpha1.OmniCluster) string {
	rollout := cluster.Status.Rollout
	if rollout == nil || rollout.State != v1alpha1.RolloutHeld || !slices.Contains(rollout.Kinds, v1alpha1.ChangeTalosVersion) || cluster.Status.Omni == nil {
		return ""
	}

	by := ""
	if rollout.Policy != "" {
		by = fmt.Sprintf(" by OmniRolloutPolicy %q", rollout.Policy)
	}

	return fmt.Sprintf("; the cluster runs Talos %s, and %s is held%s", cluster.Status.Omni.TalosVersion, cluster.Spec.Talos.Version, by)
}

// missingMachines returns where to look for machines that Omni does not reach: a mistyped ID, or a class without free
// machines, has no other sign.
func missingMachines(machines v1alpha1.MachineCounts, cluster string) string {
	missing := machines.Requested - machines.Connected
	if missing <= 0 {
		return ""
	}

	return fmt.Sprintf("; %d not connected to Omni: check that the listed IDs are registered there, or that the class has free machines or its provider "+
		"makes them (see the condition Available of OmniCluster %q), and that they run", missing, cluster)
}

func phase(phase string) string {
	if phase == "" {
		return "in no phase yet"
	}

	return "in phase " + phase
}

// judgeMachine returns the outcome for one machine, from the cluster's status. A machine that is to join with changes that a
// rollout policy holds does not wait for anything else.
func judgeMachine(cluster *v1alpha1.OmniCluster, id string, synced loop.Outcome) loop.Outcome {
	state := findMachine(cluster, id)

	switch {
	case state == nil && synced.Reason() == v1alpha1.ReasonHeld:
		return synced
	case state == nil:
		return loop.Wait(0, v1alpha1.ReasonMachinesNotReady, "Omni says nothing about machine %s yet", id)
	case !state.Connected:
		return loop.Wait(0, v1alpha1.ReasonMachinesNotReady, "the machine is not connected to Omni (last stage %s): check that it runs and reaches Omni", stage(state.Stage))
	case !state.Ready:
		return loop.Wait(0, v1alpha1.ReasonMachinesNotReady, "the machine is not ready: stage %s", stage(state.Stage))
	default:
		return loop.Continue(v1alpha1.ReasonMachinesReady, "the machine is ready: stage %s", state.Stage)
	}
}

func stage(stage string) string {
	if stage == "" {
		return "unknown"
	}

	return stage
}

func findSet(cluster *v1alpha1.OmniCluster, name string) *v1alpha1.MachineSetStatus {
	if cluster == nil || cluster.Status.Omni == nil {
		return nil
	}

	for i := range cluster.Status.Omni.MachineSets {
		if set := &cluster.Status.Omni.MachineSets[i]; set.Name == name {
			return set
		}
	}

	return nil
}

func findMachine(cluster *v1alpha1.OmniCluster, id string) *v1alpha1.MachineState {
	if cluster == nil || cluster.Status.Omni == nil {
		return nil
	}

	for i := range cluster.Status.Omni.MachineStates {
		if state := &cluster.Status.Omni.MachineStates[i]; state.ID == id {
			return state
		}
	}

	return nil
}
