package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// ValidateOmniMachine checks a new OmniMachine.
func ValidateOmniMachine(obj *v1alpha1.OmniMachine) field.ErrorList {
	return append(validateMeta(&obj.ObjectMeta), validateOmniMachineSpec(obj, nil)...)
}

// ValidateOmniMachineUpdate checks a changed OmniMachine. An edit must not lead it away from the machine that has its settings.
func ValidateOmniMachineUpdate(obj, old *v1alpha1.OmniMachine) field.ErrorList {
	always := immutable(obj.EffectiveMachineID(), old.EffectiveMachineID(), field.NewPath("spec", "machineID"),
		"create a new OmniMachine for another machine")
	always = append(always, immutableClusterRef(obj.Spec.ClusterRef, old.Spec.ClusterRef, old.Status.ClusterRef,
		"To move the machine, take "+old.EffectiveMachineID()+" off the list of its set there first (kubectl edit ocp,ow); no cluster counts this object then")...)

	return validateUpdate(change{
		meta: &obj.ObjectMeta, oldMeta: &old.ObjectMeta, spec: &obj.Spec, oldSpec: &old.Spec, always: always,
		rules: func() field.ErrorList { return validateOmniMachineSpec(obj, old.Spec.Patches) },
	})
}

// WarningsForOmniMachine returns advice on an OmniMachine, as "path: message".
func WarningsForOmniMachine(obj *v1alpha1.OmniMachine) []string {
	return warningsForPatches(obj.Spec.Patches, field.NewPath("spec", "patches"))
}

func validateOmniMachineSpec(obj *v1alpha1.OmniMachine, stored []v1alpha1.Patch) field.ErrorList {
	spec, path := &obj.Spec, field.NewPath("spec")

	errs := validateReference(spec.ClusterRef, path.Child("clusterRef"), "an OmniCluster of this namespace")

	if id := obj.EffectiveMachineID(); !isUUID(id) {
		errs = append(errs, invalidName(spec.MachineID, id, "it must be the UUID of a machine, as Omni shows it", path.Child("machineID")))
	}

	return append(errs, validateMachineConfiguration(&spec.MachineConfiguration, stored, path)...)
}
