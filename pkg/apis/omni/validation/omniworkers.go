package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// ValidateOmniWorkers checks a new OmniWorkers.
func ValidateOmniWorkers(obj *v1alpha1.OmniWorkers) field.ErrorList {
	return append(validateMeta(&obj.ObjectMeta), validateOmniWorkersSpec(obj, nil)...)
}

// ValidateOmniWorkersUpdate checks a changed OmniWorkers. An edit must not lead it away from the machine set that it made.
func ValidateOmniWorkersUpdate(obj, old *v1alpha1.OmniWorkers) field.ErrorList {
	always := immutable(obj.EffectiveWorkerSetName(), old.EffectiveWorkerSetName(), field.NewPath("spec", "workerSetName"),
		"a worker set cannot be renamed; create a new OmniWorkers and delete this one")
	always = append(always, immutableClusterRef(obj.Spec.ClusterRef, old.Spec.ClusterRef, old.Status.ClusterRef,
		"To move the set, create an OmniWorkers of another name for the other cluster, then wipe the machines of this one: "+
			deleteCommand("omniworkers", &old.ObjectMeta))...)

	return validateUpdate(change{
		meta: &obj.ObjectMeta, oldMeta: &old.ObjectMeta, spec: &obj.Spec, oldSpec: &old.Spec, always: always,
		rules: func() field.ErrorList { return validateOmniWorkersSpec(obj, old.Spec.Patches) },
	})
}

// ValidateOmniWorkersScale checks whether the scale subresource may set a worker set to this number of machines.
// Errors are at spec.replicas of the Scale.
func ValidateOmniWorkersScale(obj *v1alpha1.OmniWorkers, replicas int32) field.ErrorList {
	return validateScale(&obj.Spec.MachineSetMachines, replicas, 0, "must be 0 or more")
}

// WarningsForOmniWorkers returns advice on an OmniWorkers, as "path: message".
func WarningsForOmniWorkers(obj *v1alpha1.OmniWorkers) []string {
	return warningsForPatches(obj.Spec.Patches, field.NewPath("spec", "patches"))
}

// WarningsForOmniWorkersUpdate returns warnings about what a change of an OmniWorkers takes away, as "path: message".
func WarningsForOmniWorkersUpdate(obj, old *v1alpha1.OmniWorkers) []string {
	return warningsForLeaving(&obj.Spec.MachineSetMachines, &old.Spec.MachineSetMachines, field.NewPath("spec"))
}

func validateOmniWorkersSpec(obj *v1alpha1.OmniWorkers, stored []v1alpha1.Patch) field.ErrorList {
	spec, path := &obj.Spec, field.NewPath("spec")

	errs := validateReference(spec.ClusterRef, path.Child("clusterRef"), "an OmniCluster of this namespace")

	switch name := obj.EffectiveWorkerSetName(); {
	case !isOmniName(name):
		errs = append(errs, invalidName(spec.WorkerSetName, name, "a worker set's name in Omni has letters, digits, - and _, at most 63", path.Child("workerSetName")))
	case name == omnires.ControlPlanesIDSuffix:
		errs = append(errs, invalidName(spec.WorkerSetName, name, "control-planes is the name of the control plane's set: choose another one", path.Child("workerSetName")))
	}

	errs = append(errs, validateMachineSetMachines(&spec.MachineSetMachines, path)...)
	errs = append(errs, validateMachineConfiguration(&spec.MachineConfiguration, stored, path)...)
	errs = append(errs, validateKernelArgsOfSet(spec.MachineClass, spec.KernelArgs, path)...)
	errs = append(errs, validateStrategy(spec.UpdateStrategy, path.Child("updateStrategy"))...)
	errs = append(errs, validateStrategy(spec.UpgradeStrategy, path.Child("upgradeStrategy"))...)

	return append(errs, validateStrategy(spec.DeleteStrategy, path.Child("deleteStrategy"))...)
}
