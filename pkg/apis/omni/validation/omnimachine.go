package validation

import (
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/cel"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
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

	errs = append(errs, validateInstall(spec.Install, path.Child("install"))...)

	return append(errs, validateMachineConfiguration(&spec.MachineConfiguration, stored, path)...)
}

// maxSelector is the longest disk selector, in bytes. One that names ten disks by their serial numbers has about 500.
const maxSelector = 2 << 10

// validateInstall checks a disk selector as Omni does: a CEL expression about one disk.
func validateInstall(install *v1alpha1.MachineInstall, path *field.Path) field.ErrorList {
	at := path.Child("diskSelector")

	switch {
	case install == nil || install.DiskSelector == "":
		return nil
	case install.Disk != "":
		return field.ErrorList{field.Forbidden(at, "cannot be combined with disk: keep one of them")}
	case len(install.DiskSelector) > maxSelector:
		return field.ErrorList{field.TooLong(at, "", maxSelector)}
	}

	if _, err := cel.ParseBooleanExpression(install.DiskSelector, celenv.DiskLocator()); err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")

		return field.ErrorList{invalidValue(at, "must be a CEL expression about a disk that is true or false, such as disk.transport == 'nvme': "+
			redact.Bounded(redact.Line(first), maxExplained))}
	}

	return nil
}

// maxExplained is how much of the words of the CEL library a message has, in bytes.
const maxExplained = 160
