package template

import (
	"cmp"
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
