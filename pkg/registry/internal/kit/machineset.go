package kit

import (
	"strconv"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// MachineSetColumns are the columns of the kinds that stand for a machine set.
func MachineSetColumns[T Object](scale *Scale[T]) []Column[T] {
	return []Column[T]{
		ReadyColumn[T](),
		ClusterColumn[T](),
		{
			Name:        "Desired",
			Description: "Number of machines asked for.",
			Cell:        func(obj T) any { return desired(scale.Machines(obj)) },
		},
		{
			Name:        "Ready Machines",
			Type:        "integer",
			Description: "Number of machines that are ready.",
			Cell:        func(obj T) any { return int64(scale.Status(obj).ReadyReplicas) },
		},
		{
			Name:        "Class",
			Description: "Machine class that the machines come from; none where they are listed.",
			Cell:        func(obj T) any { return className(scale.Machines(obj)) },
		},
		ReasonColumn[T]("Status", false),
	}
}

// askedFor is how many machines a set asks for: the size of its machine class, or the number of listed machines. A size that cannot
// be read is 0.
func askedFor(machines *v1alpha1.MachineSetMachines) (count int32, unlimited bool) {
	if machines.MachineClass == nil {
		return int32(len(machines.Machines)), false //nolint:gosec // validation bounds the list
	}

	count, unlimited, _ = machines.MachineClass.Count()

	return count, unlimited
}

func desired(machines *v1alpha1.MachineSetMachines) string {
	count, unlimited := askedFor(machines)
	if unlimited {
		return v1alpha1.UnlimitedSize
	}

	return strconv.Itoa(int(count))
}

func className(machines *v1alpha1.MachineSetMachines) string {
	if machines.MachineClass == nil {
		return none
	}

	return machines.MachineClass.Name
}
