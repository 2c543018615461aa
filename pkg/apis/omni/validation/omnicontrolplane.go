package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// needsMachine explains why an empty control plane is refused.
const needsMachine = "a control plane needs at least one machine"

// ValidateOmniControlPlane checks a new OmniControlPlane.
func ValidateOmniControlPlane(obj *v1alpha1.OmniControlPlane) field.ErrorList {
	return append(validateMeta(&obj.ObjectMeta), validateOmniControlPlaneSpec(&obj.Spec, nil, field.NewPath("spec"))...)
}

// ValidateOmniControlPlaneUpdate checks a changed OmniControlPlane. The reference to its cluster is immutable once
// that counts it, so that an edit does not take the control plane's document away from a cluster.
func ValidateOmniControlPlaneUpdate(obj, old *v1alpha1.OmniControlPlane) field.ErrorList {
	spec := field.NewPath("spec")

	always := immutable(obj.Spec.BootstrapSpec, old.Spec.BootstrapSpec, spec.Child("bootstrapSpec"),
		"Omni restores a backup only when it makes the control plane: suspend the cluster, delete its control plane set in Omni, "+
			"and create a new OmniControlPlane; never delete the OmniCluster")
	always = append(always, immutableClusterRef(obj.Spec.ClusterRef, old.Spec.ClusterRef, old.Status.ClusterRef,
		"A control plane goes with its OmniCluster only: create an OmniControlPlane of another name for the other cluster")...)

	return validateUpdate(change{
		meta: &obj.ObjectMeta, oldMeta: &old.ObjectMeta, spec: &obj.Spec, oldSpec: &old.Spec, always: always,
		rules: func() field.ErrorList { return validateOmniControlPlaneSpec(&obj.Spec, old.Spec.Patches, spec) },
	})
}

// ValidateOmniControlPlaneScale checks whether the scale subresource may set a control plane to this number of
// machines. Errors are at spec.replicas of the Scale.
func ValidateOmniControlPlaneScale(obj *v1alpha1.OmniControlPlane, replicas int32) field.ErrorList {
	return validateScale(&obj.Spec.MachineSetMachines, replicas, 1, "a control plane needs at least one machine")
}

// WarningsForOmniControlPlane returns advice on an OmniControlPlane, as "path: message".
func WarningsForOmniControlPlane(obj *v1alpha1.OmniControlPlane) []string {
	return warningsForPatches(obj.Spec.Patches, field.NewPath("spec", "patches"))
}

// WarningsForOmniControlPlaneUpdate returns warnings about what a change of an OmniControlPlane takes away, as "path: message".
func WarningsForOmniControlPlaneUpdate(obj, old *v1alpha1.OmniControlPlane) []string {
	return warningsForLeaving(&obj.Spec.MachineSetMachines, &old.Spec.MachineSetMachines, field.NewPath("spec"))
}

func validateOmniControlPlaneSpec(spec *v1alpha1.OmniControlPlaneSpec, stored []v1alpha1.Patch, path *field.Path) field.ErrorList {
	errs := validateReference(spec.ClusterRef, path.Child("clusterRef"), "an OmniCluster of this namespace")
	errs = append(errs, validateMachineSetMachines(&spec.MachineSetMachines, path)...)
	errs = append(errs, validateControlPlaneSize(&spec.MachineSetMachines, path)...)
	errs = append(errs, validateMachineConfiguration(&spec.MachineConfiguration, stored, path)...)
	errs = append(errs, validateKernelArgsOfSet(spec.MachineClass, spec.KernelArgs, path)...)
	errs = append(errs, validateBootstrap(spec.BootstrapSpec, path.Child("bootstrapSpec"))...)

	return append(errs, validateStrategy(spec.UpgradeStrategy, path.Child("upgradeStrategy"))...)
}

func validateControlPlaneSize(machines *v1alpha1.MachineSetMachines, path *field.Path) field.ErrorList {
	if machines.MachineClass == nil && len(machines.Machines) == 0 {
		return field.ErrorList{field.Required(path.Child("machines"), needsMachine+": set machines or machineClass")}
	}

	if machines.MachineClass == nil {
		return nil
	}

	if count, unlimited, err := machines.MachineClass.Count(); err == nil && !unlimited && count == 0 {
		return field.ErrorList{field.Invalid(path.Child("machineClass", "size"), 0, needsMachine+": set 1 or more")}
	}

	return nil
}

func validateBootstrap(bootstrap *v1alpha1.BootstrapSpec, path *field.Path) field.ErrorList {
	if bootstrap == nil {
		return nil
	}

	var errs field.ErrorList

	switch {
	case bootstrap.ClusterUUID == "":
		errs = append(errs, field.Required(path.Child("clusterUUID"), "set the UUID of the cluster that made the backup"))
	case !isUUID(bootstrap.ClusterUUID):
		errs = append(errs, field.Invalid(path.Child("clusterUUID"), bootstrap.ClusterUUID, "must be the UUID of the cluster that made the backup"))
	}

	if bootstrap.Snapshot == "" {
		errs = append(errs, field.Required(path.Child("snapshot"), "set the file name of the backup"))
	}

	return errs
}
