package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// ValidateOmniControlPlaneScale checks whether the scale subresource may set a control plane to this number of
// machines. Errors are at spec.replicas of the Scale.
func ValidateOmniControlPlaneScale(obj *v1alpha1.OmniControlPlane, replicas int32) field.ErrorList {
	return validateScale(&obj.Spec.MachineSetMachines, replicas, 1, "a control plane needs at least one machine")
}

// ValidateOmniWorkersScale checks whether the scale subresource may set a worker set to this number of machines.
// Errors are at spec.replicas of the Scale.
func ValidateOmniWorkersScale(obj *v1alpha1.OmniWorkers, replicas int32) field.ErrorList {
	return validateScale(&obj.Spec.MachineSetMachines, replicas, 0, "must be 0 or more")
}

func validateScale(machines *v1alpha1.MachineSetMachines, replicas, lowest int32, tooFew string) field.ErrorList {
	path := field.NewPath("spec", "replicas")

	if machines.MachineClass == nil {
		return field.ErrorList{field.Forbidden(path,
			"this set lists its machines: add UUIDs to spec.machines or remove them there; only a set with spec.machineClass can be scaled")}
	}

	_, unlimited, err := machines.MachineClass.Machines()

	switch {
	case unlimited || err != nil:
		return field.ErrorList{field.Forbidden(path,
			"this set takes every machine of its class: set spec.machineClass.size to a number first")}
	case replicas < lowest:
		return field.ErrorList{field.Invalid(path, replicas, tooFew)}
	default:
		return nil
	}
}
