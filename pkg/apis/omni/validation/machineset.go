package validation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// validateMachineSetMachines checks where the machines of a set come from. Here, a set with neither source is an
// empty static set; the rules for control planes refuse that.
func validateMachineSetMachines(machines *v1alpha1.MachineSetMachines, path *field.Path) field.ErrorList {
	errs := validateMachineIDs(machines.Machines, path.Child("machines"))
	if machines.MachineClass == nil {
		return errs
	}

	if len(machines.Machines) > 0 {
		errs = append(errs, field.Forbidden(path.Child("machineClass"), "cannot be combined with machines: keep one of them"))
	}

	return append(errs, validateMachineClass(machines.MachineClass, path.Child("machineClass"))...)
}

func validateMachineIDs(ids []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList

	seen := make(map[string]bool, len(ids))

	for i, id := range ids {
		// The same machine may be written in two spellings.
		canonical, ok := v1alpha1.CanonicalUUID(id)

		switch {
		case !ok:
			errs = append(errs, field.Invalid(path.Index(i), id, "must be the UUID of a machine, as Omni shows it"))
		case seen[canonical]:
			errs = append(errs, field.Duplicate(path.Index(i), id))
		}

		seen[canonical] = true
	}

	return errs
}

func validateMachineClass(class *v1alpha1.MachineClass, path *field.Path) field.ErrorList {
	var errs field.ErrorList

	if class.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "name a machine class of Omni"))
	}

	if class.Size == nil {
		return append(errs, field.Required(path.Child("size"), "set the number of machines, or unlimited"))
	}

	if _, _, err := class.Count(); err != nil {
		errs = append(errs, field.Invalid(path.Child("size"), class.Size.String(), "must be 0 or more, or unlimited"))
	}

	return errs
}

// validateMachineConfiguration checks the fields that control planes, worker sets and machines share. stored are the
// patches of the object before the update.
func validateMachineConfiguration(config *v1alpha1.MachineConfiguration, stored []v1alpha1.Patch, path *field.Path) field.ErrorList {
	errs := validateOmniMetadata(config.Labels, config.Annotations, path)
	errs = append(errs, validatePatches(config.Patches, stored, path.Child("patches"))...)

	return append(errs, validateMachineLists(config.SystemExtensions, config.KernelArgs, path)...)
}

// validateMachineLists refuses empty entries, which Omni would pass on to the Image Factory.
func validateMachineLists(extensions, kernelArgs []string, path *field.Path) field.ErrorList {
	errs := refuseEmptyEntries(extensions, path.Child("systemExtensions"), "name a system extension, such as siderolabs/iscsi-tools, or remove the entry")

	return append(errs, refuseEmptyEntries(kernelArgs, path.Child("kernelArgs"), "write a kernel argument, or remove the entry")...)
}

func refuseEmptyEntries(list []string, path *field.Path, remedy string) field.ErrorList {
	var errs field.ErrorList

	for i, entry := range list {
		if strings.TrimSpace(entry) == "" {
			errs = append(errs, field.Required(path.Index(i), remedy))
		}
	}

	return errs
}

// validateKernelArgsOfSet refuses kernel arguments, even an empty list of them, on a set whose
// machines are not known beforehand.
func validateKernelArgsOfSet(class *v1alpha1.MachineClass, kernelArgs []string, path *field.Path) field.ErrorList {
	if class == nil || kernelArgs == nil {
		return nil
	}

	return field.ErrorList{field.Forbidden(path.Child("kernelArgs"), "cannot be combined with machineClass: remove it, or list machines")}
}

func validateStrategy(strategy *v1alpha1.Strategy, path *field.Path) field.ErrorList {
	if strategy == nil {
		return nil
	}

	errs := validateEnum(strategy.Type, path.Child("type"), v1alpha1.StrategyRolling, v1alpha1.StrategyUnset)

	// An absent value decodes as 0.
	if strategy.Rolling != nil && strategy.Rolling.MaxParallelism < 0 {
		errs = append(errs, field.Invalid(path.Child("rolling", "maxParallelism"), strategy.Rolling.MaxParallelism, "must be at least 1"))
	}

	return errs
}

// validateScale checks the number of machines that the scale subresource asks for. There is no upper bound.
func validateScale(machines *v1alpha1.MachineSetMachines, replicas, lowest int32, tooFew string) field.ErrorList {
	path := field.NewPath("spec", "replicas")

	if machines.MachineClass == nil {
		return field.ErrorList{field.Forbidden(path,
			"this set lists its machines: add UUIDs to spec.machines or remove them there; only a set with spec.machineClass can be scaled")}
	}

	_, unlimited, err := machines.MachineClass.Count()

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

// warningsForPatches returns warnings about kinds and numbers of inline patches.
func warningsForPatches(patches []v1alpha1.Patch, path *field.Path) []string {
	var warnings []string
	for i := range patches {
		inline := path.Index(i).Child("inline")
		warnings = append(warnings, warningsForKind(patches[i].Inline, inline)...)
		warnings = append(warnings, warningsForInstallDisk(patches[i].Inline, inline)...)
		warnings = append(warnings, warningsForNumbers(patches[i].Inline, inline)...)
	}

	return warnings
}

// warningsForLeaving returns warnings about the machines that an update takes away from a set: each of them is wiped. A null in a
// merge patch, or an empty value in a template, takes all of them.
func warningsForLeaving(machines, old *v1alpha1.MachineSetMachines, path *field.Path) []string {
	listed := machines.MachineIDs()
	leaving := slices.DeleteFunc(old.MachineIDs(), func(id string) bool { return slices.Contains(listed, id) })

	var warnings []string
	for _, id := range leaving[:min(maxWarned, len(leaving))] {
		warnings = append(warnings, warning(path.Child("machines"), fmt.Sprintf("machine %s leaves this set, and Omni wipes it: list it again to keep it", id)))
	}

	if more := len(leaving) - maxWarned; more > 0 {
		warnings = append(warnings, warning(path.Child("machines"), words.Plural(more, "more machine")+" leave this set, and Omni wipes them"))
	}

	return append(warnings, warningsForSmallerClass(machines.MachineClass, old.MachineClass, path.Child("machineClass"))...)
}

// warningsForSmallerClass returns a warning if a set may lose machines of its class.
func warningsForSmallerClass(class, old *v1alpha1.MachineClass, path *field.Path) []string {
	if old == nil {
		return nil
	}

	if class == nil || class.Name != old.Name {
		return []string{warning(path, fmt.Sprintf("Omni wipes the machines that leave: put class %.20s back to keep them", old.Name))}
	}

	count, unlimited, err := class.Count()
	before, all, oldErr := old.Count()

	switch {
	case err != nil || oldErr != nil || unlimited:
		return nil
	case all:
		return []string{warning(path.Child("size"), fmt.Sprintf("Omni wipes machines of the class beyond %d, and chooses which", count))}
	case count < before:
		return []string{warning(path.Child("size"),
			fmt.Sprintf("%s fewer: Omni chooses which leave, and wipes them", words.Plural(int(before-count), "machine")))}
	default:
		return nil
	}
}
