package validation

import (
	"cmp"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// validateManifests checks the groups of Kubernetes objects that Omni applies.
func validateManifests(manifests []v1alpha1.Manifest, path *field.Path) field.ErrorList {
	var errs field.ErrorList

	names := make(map[string]bool, len(manifests))

	for i := range manifests {
		manifest, at := &manifests[i], path.Index(i)

		switch {
		case manifest.Name == "":
			errs = append(errs, field.Required(at.Child("name"), "give the manifest a name that is unique in the cluster"))
		case names[manifest.Name]:
			errs = append(errs, field.Duplicate(at.Child("name"), manifest.Name))
		}

		names[manifest.Name] = true

		errs = append(errs, validateEnum(manifest.Mode, at.Child("mode"), v1alpha1.ManifestFull, v1alpha1.ManifestOneTime)...)
		errs = append(errs, validateOmniMetadata(manifest.Labels, manifest.Annotations, at)...)
		errs = append(errs, validateManifestContent(manifest, at)...)
	}

	return errs
}

func validateManifestContent(manifest *v1alpha1.Manifest, path *field.Path) field.ErrorList {
	switch {
	case len(manifest.Inline) > 0 && manifest.ValueFrom != nil:
		return field.ErrorList{field.Forbidden(path.Child("valueFrom"), "cannot be combined with inline: keep one of them")}
	case len(manifest.Inline) > 0:
		return validateFreeForm(path.Child("inline"), "split it, or read it with valueFrom", manifest.Inline...)
	case manifest.ValueFrom != nil:
		return validateValueSource(manifest.ValueFrom, path.Child("valueFrom"))
	default:
		return field.ErrorList{field.Required(path, "set inline or valueFrom")}
	}
}

// validateHealthchecks checks the Jobs that gate upgrades.
func validateHealthchecks(healthchecks []v1alpha1.Healthcheck, path *field.Path) field.ErrorList {
	var errs field.ErrorList

	seen := make(map[string]bool, len(healthchecks))

	for i := range healthchecks {
		check, at := &healthchecks[i], path.Index(i)

		errs = append(errs, validateIdentity(check.Name, check.IDOverride, at)...)

		// Omni identifies a healthcheck by its override, or by its name if it has no override.
		if id := cmp.Or(check.IDOverride, check.Name); id != "" {
			if seen[id] {
				errs = append(errs, duplicateHealthcheck(check, at))
			}

			seen[id] = true
		}

		errs = append(errs, validateOmniMetadata(check.Labels, check.Annotations, at)...)
		errs = append(errs, validateDuration(check.Interval, minHealthcheckInterval, noLimit, at.Child("interval"))...)

		if check.Job == nil {
			errs = append(errs, field.Required(at.Child("job"), "write the Kubernetes Job to run"))
		} else {
			errs = append(errs, validateFreeForm(at.Child("job"), "shorten it, for example with an image that holds the check", *check.Job)...)
		}
	}

	return errs
}

func duplicateHealthcheck(check *v1alpha1.Healthcheck, path *field.Path) *field.Error {
	if check.IDOverride != "" {
		return field.Duplicate(path.Child("idOverride"), check.IDOverride)
	}

	return field.Duplicate(path.Child("name"), check.Name)
}
