package template

import (
	"fmt"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// AssembleError says why the objects of a cluster do not make a template.
type AssembleError struct {
	// Reason is one of v1alpha1's condition reasons: ControlPlaneMissing, MultipleControlPlanes,
	// DuplicateWorkerSet or DuplicateMachine.
	Reason string
	// Message is for people and names every object that is part of the problem (of many, the first two).
	Message string
	// Wait is true if nothing is wrong and an object is merely not there yet; false means that somebody has
	// to change an object.
	Wait bool
}

// Error returns the message.
func (e *AssembleError) Error() string { return e.Message }

// controlPlaneMissing is for a cluster without a control plane. One that had one, such as in a namespace that is
// being deleted, does not wait for its first.
func controlPlaneMissing(cluster *v1alpha1.OmniCluster) *AssembleError {
	message := fmt.Sprintf("no OmniControlPlane names OmniCluster %q yet", cluster.Name)

	if had := cluster.Status.ControlPlaneRef; had != nil {
		message = fmt.Sprintf("OmniControlPlane %q was deleted, and no other names OmniCluster %q; its cluster stays as it is in Omni. "+
			"If it is to go, delete the OmniCluster; else create the OmniControlPlane again", had.Name, cluster.Name)
	}

	return &AssembleError{Reason: v1alpha1.ReasonControlPlaneMissing, Message: message, Wait: true}
}

func checkControlPlanes(cluster *v1alpha1.OmniCluster, controlPlanes []v1alpha1.OmniControlPlane) error {
	if len(controlPlanes) < 2 {
		return nil
	}

	message := fmt.Sprintf("OmniControlPlanes %q and %q both name OmniCluster %q; a cluster has one: delete the other",
		controlPlanes[0].Name, controlPlanes[1].Name, cluster.Name)

	if more := len(controlPlanes) - 2; more > 0 {
		message += fmt.Sprintf(" (and %d more)", more)
	}

	return &AssembleError{Reason: v1alpha1.ReasonMultipleControlPlanes, Message: message}
}

// checkWorkerSets expects the sets sorted by name, so that duplicates are neighbours.
func checkWorkerSets(workers []v1alpha1.OmniWorkers) error {
	for i := 1; i < len(workers); i++ {
		name := workers[i].EffectiveWorkerSetName()
		if workers[i-1].EffectiveWorkerSetName() != name {
			continue
		}

		return &AssembleError{
			Reason: v1alpha1.ReasonDuplicateWorkerSet,
			Message: fmt.Sprintf("OmniWorkers %q and %q both have the worker set name %q",
				workers[i-1].Name, workers[i].Name, name),
		}
	}

	return nil
}

// checkMachineObjects expects the machines sorted by ID, so that duplicates are neighbours.
func checkMachineObjects(machines []v1alpha1.OmniMachine) error {
	for i := 1; i < len(machines); i++ {
		id := machines[i].EffectiveMachineID()
		if machines[i-1].EffectiveMachineID() != id {
			continue
		}

		return &AssembleError{
			Reason: v1alpha1.ReasonDuplicateMachine,
			Message: fmt.Sprintf("OmniMachines %q and %q both describe machine %q",
				machines[i-1].Name, machines[i].Name, id),
		}
	}

	return nil
}

// listedMachines maps every machine that a set lists to that set, and refuses a machine that is listed twice.
func listedMachines(controlPlanes []v1alpha1.OmniControlPlane, workers []v1alpha1.OmniWorkers) (map[string]string, error) {
	owner := map[string]string{}

	list := func(set string, machines []string) error {
		for _, id := range machines {
			if other, taken := owner[id]; taken {
				return machineListedTwice(id, other, set)
			}

			owner[id] = set
		}

		return nil
	}

	for _, controlPlane := range controlPlanes {
		if err := list(fmt.Sprintf("OmniControlPlane %q", controlPlane.Name), controlPlane.Spec.MachineIDs()); err != nil {
			return nil, err
		}
	}

	for _, set := range workers {
		if err := list(fmt.Sprintf("OmniWorkers %q", set.Name), set.Spec.MachineIDs()); err != nil {
			return nil, err
		}
	}

	return owner, nil
}

func machineListedTwice(id, first, second string) *AssembleError {
	message := fmt.Sprintf("%s and %s both list machine %q", first, second, id)
	if first == second {
		message = fmt.Sprintf("%s lists machine %q twice", first, id)
	}

	return &AssembleError{Reason: v1alpha1.ReasonDuplicateMachine, Message: message}
}
