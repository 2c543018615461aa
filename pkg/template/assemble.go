// Package template turns the objects of one cluster into an Omni cluster template: one YAML stream with
// a Cluster document, its ControlPlane, its Workers by name and its Machines by ID.
//
// It is pure. It reads no cluster, no clock and no disk, so that the API server (template subresource) and
// the controller (plan and sync) show and apply the same text for the same objects:
//
//	documents, err := template.Assemble(template.Input{...}) // which objects count, and do they fit together
//	text, err := documents.Render(values, template.MarkOf(cluster, hub))
//
// Rendering is deterministic. The bytes depend on what the objects say and never on the order in which they
// were listed, on the order of keys, or on white space in a free-form block; otherwise the tool that applied
// an object would decide whether Omni sees a change. Free-form blocks are placed as literal text, because
// Omni re-encodes a nested mapping (and turns 1.0 into 1) but keeps a text byte for byte.
package template

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Input is a cluster and the objects that may belong to it. Objects that name another cluster or live in
// another namespace are ignored, as are those that are being deleted. The order does not matter.
type Input struct {
	// Cluster is the OmniCluster. It is required.
	Cluster *v1alpha1.OmniCluster
	// ControlPlanes are the candidates for the cluster's one control plane.
	ControlPlanes []v1alpha1.OmniControlPlane
	// Workers are the worker sets.
	Workers []v1alpha1.OmniWorkers
	// Machines are the settings of single machines.
	Machines []v1alpha1.OmniMachine
}

// All returns the objects without the cluster.
func (i Input) All() iter.Seq[metav1.Object] {
	return func(yield func(metav1.Object) bool) {
		for at := range i.ControlPlanes {
			if !yield(&i.ControlPlanes[at]) {
				return
			}
		}

		for at := range i.Workers {
			if !yield(&i.Workers[at]) {
				return
			}
		}

		for at := range i.Machines {
			if !yield(&i.Machines[at]) {
				return
			}
		}
	}
}

// Documents are the objects that make up one cluster template. They share memory with the Input and must
// not be modified.
type Documents struct {
	// Cluster is the OmniCluster.
	Cluster *v1alpha1.OmniCluster
	// ControlPlane is the cluster's only control plane, never nil.
	ControlPlane *v1alpha1.OmniControlPlane
	// Workers are the worker sets, sorted by effective worker set name, which is unique.
	Workers []v1alpha1.OmniWorkers
	// Machines are the machines that a set lists, sorted by effective machine ID, which is unique.
	Machines []v1alpha1.OmniMachine
	// Unlisted are the machines that no set lists, sorted by effective machine ID. They are not rendered,
	// because Omni refuses a whole template that has one.
	Unlisted []v1alpha1.OmniMachine
}

// Assemble picks the objects that count and checks what can only be seen across objects: exactly one control
// plane, one object per worker set name, one object per machine, and each machine in one set at most. The
// error is always an *AssembleError.
func Assemble(in Input) (*Documents, error) {
	controlPlanes := counted(in.ControlPlanes, in.Cluster, func(o *v1alpha1.OmniControlPlane) member {
		return member{meta: &o.ObjectMeta, cluster: o.Spec.ClusterRef.Name, key: o.Name}
	})
	workers := counted(in.Workers, in.Cluster, func(o *v1alpha1.OmniWorkers) member {
		return member{meta: &o.ObjectMeta, cluster: o.Spec.ClusterRef.Name, key: o.EffectiveWorkerSetName()}
	})
	machines := counted(in.Machines, in.Cluster, func(o *v1alpha1.OmniMachine) member {
		return member{meta: &o.ObjectMeta, cluster: o.Spec.ClusterRef.Name, key: o.EffectiveMachineID()}
	})

	if err := checkControlPlanes(in.Cluster, controlPlanes); err != nil {
		return nil, err
	}

	if err := checkWorkerSets(workers); err != nil {
		return nil, err
	}

	if err := checkMachineObjects(machines); err != nil {
		return nil, err
	}

	listed, err := listedMachines(controlPlanes, workers)
	if err != nil {
		return nil, err
	}

	// Last on purpose: a conflict needs somebody to act, and must not hide behind "wait for the control plane".
	if len(controlPlanes) == 0 {
		return nil, controlPlaneMissing(in.Cluster)
	}

	documents := &Documents{Cluster: in.Cluster, ControlPlane: &controlPlanes[0], Workers: workers}

	for _, machine := range machines {
		if _, ok := listed[machine.EffectiveMachineID()]; ok {
			documents.Machines = append(documents.Machines, machine)
		} else {
			documents.Unlisted = append(documents.Unlisted, machine)
		}
	}

	return documents, nil
}

// member is what decides whether an object belongs to a cluster, and where it is sorted.
type member struct {
	meta    *metav1.ObjectMeta
	cluster string
	key     string
}

// counted returns the objects that belong to the cluster and stay, sorted by key and then by object name, so
// that even an error message is the same for every order of the input.
func counted[T any](objects []T, cluster *v1alpha1.OmniCluster, describe func(*T) member) []T {
	var kept []T

	for i := range objects {
		m := describe(&objects[i])
		if m.cluster == cluster.Name && m.meta.Namespace == cluster.Namespace && m.meta.DeletionTimestamp.IsZero() {
			kept = append(kept, objects[i])
		}
	}

	slices.SortFunc(kept, func(a, b T) int {
		left, right := describe(&a), describe(&b)

		return cmp.Or(cmp.Compare(left.key, right.key), cmp.Compare(left.meta.Name, right.meta.Name))
	})

	return kept
}

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
