package validation

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

const (
	minHelmInterval = 30 * time.Second
	minHelmTimeout  = time.Second
	maxHelmTimeout  = 24 * time.Hour
	// maxReleaseName is Helm's limit, so that the names of the Secrets with the revisions are not too long.
	maxReleaseName = 53
)

var (
	releaseName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	jsonPointer = regexp.MustCompile(`^(/([^~/]|~[01])*)+$`)
)

// ValidateOmniHelmRelease checks a new OmniHelmRelease.
func ValidateOmniHelmRelease(obj *v1alpha1.OmniHelmRelease) field.ErrorList {
	return append(validateMeta(&obj.ObjectMeta), validateOmniHelmReleaseSpec(obj)...)
}

// ValidateOmniHelmReleaseUpdate checks a changed OmniHelmRelease. The release's name and namespace are immutable,
// also while the object is being deleted: otherwise the uninstall would remove another release. clusterRef and
// kubeconfigSecretRef can change: the controller compares the cluster they lead to with status.clusterID, and does
// not touch another cluster before a person accepts it.
func ValidateOmniHelmReleaseUpdate(obj, old *v1alpha1.OmniHelmRelease) field.ErrorList {
	spec := field.NewPath("spec")
	always := immutable(obj.EffectiveReleaseName(), old.EffectiveReleaseName(), spec.Child("releaseName"),
		"a release cannot be renamed; create a new OmniHelmRelease")
	always = append(always, immutable(obj.Spec.Namespace, old.Spec.Namespace, spec.Child("namespace"),
		"a release cannot be moved; create a new OmniHelmRelease")...)

	return validateUpdate(change{
		meta: &obj.ObjectMeta, oldMeta: &old.ObjectMeta, spec: &obj.Spec, oldSpec: &old.Spec, always: always,
		rules: func() field.ErrorList { return validateOmniHelmReleaseSpec(obj) },
	})
}

// ValidateOmniHelmReleaseStatusUpdate checks a new status of an OmniHelmRelease.
func ValidateOmniHelmReleaseStatusUpdate(obj, old *v1alpha1.OmniHelmRelease) field.ErrorList {
	errs := ValidateStatusUpdate(obj, old)
	revision := func(r v1alpha1.HelmRevision) int32 { return r.Revision }

	return append(errs, validateUniqueKeys(obj.Status.History, revision, field.NewPath("status", "history"), "revision")...)
}

// WarningsForOmniHelmRelease returns advice on an OmniHelmRelease, as "path: message".
func WarningsForOmniHelmRelease(obj *v1alpha1.OmniHelmRelease) []string {
	chart := field.NewPath("spec", "chart")
	warnings := warningsForNumbers(obj.Spec.Chart.Values, chart.Child("values"))

	switch repository := obj.Spec.Chart.Repository; {
	case repository != "" && strings.HasPrefix(obj.Spec.Chart.Chart, ociScheme):
		warnings = append(warnings, warning(chart.Child("repository"), "not used with an oci:// chart; remove it"))
	case strings.HasPrefix(repository, "http://"):
		warnings = append(warnings, warning(chart.Child("repository"), "the connection is not encrypted; use https"))
	}

	return append(warnings, warningsForReleaseActions(&obj.Spec, field.NewPath("spec"))...)
}

// WarningsForOmniHelmReleaseUpdate returns warnings about what a change of an OmniHelmRelease takes away, as "path: message".
func WarningsForOmniHelmReleaseUpdate(obj, old *v1alpha1.OmniHelmRelease) []string {
	// The same chart may come from another place: a repository, an oci:// address, a mirror.
	base := func(chart string) string { return chart[strings.LastIndex(chart, "/")+1:] }

	warnings := warningsForLostNulls(obj, old)

	if name := base(obj.Spec.Chart.Chart); name != base(old.Spec.Chart.Chart) {
		warnings = append(warnings, warning(field.NewPath("spec", "chart", "chart"), fmt.Sprintf("another chart: Helm deletes the objects that %.30q does not have", name)))
	}

	return warnings
}

// warningsForLostNulls returns warnings about each null in the values of a manifest that a client-side apply has just sent and that
// did not arrive: the apply sends a merge patch, in which a null removes the member.
func warningsForLostNulls(obj, old *v1alpha1.OmniHelmRelease) []string {
	text := obj.Annotations[corev1.LastAppliedConfigAnnotation]
	if text == old.Annotations[corev1.LastAppliedConfigAnnotation] || !strings.Contains(text, "null") {
		return nil
	}

	var manifest v1alpha1.OmniHelmRelease
	if json.Unmarshal([]byte(text), &manifest) != nil || manifest.Spec.Chart.Values == nil {
		return nil
	}

	var applied, arrived map[string]any
	if json.Unmarshal(manifest.Spec.Chart.Values.Raw, &applied) != nil ||
		obj.Spec.Chart.Values != nil && json.Unmarshal(obj.Spec.Chart.Values.Raw, &arrived) != nil {
		return nil
	}

	lost := lostNulls(applied, arrived, field.NewPath("spec", "chart", "values"))

	var warnings []string
	for _, at := range lost[:min(len(lost), maxNumberWarnings)] {
		warnings = append(warnings, warning(at, "client-side apply loses a null; use kubectl apply --server-side"))
	}

	return warnings
}

// lostNulls returns the paths of the nulls of one object that another does not have, sorted. A merge patch replaces lists as a whole,
// so those in lists arrive.
func lostNulls(applied, arrived map[string]any, path *field.Path) []*field.Path {
	var lost []*field.Path

	for _, name := range slices.Sorted(maps.Keys(applied)) {
		value, has := arrived[name]

		switch within := applied[name].(type) {
		case nil:
			if !has {
				lost = append(lost, path.Child(name))
			}
		case map[string]any:
			below, _ := value.(map[string]any)
			lost = append(lost, lostNulls(within, below, path.Child(name))...)
		}
	}

	return lost
}

// warningsForReleaseActions returns warnings about the settings of Helm actions.
func warningsForReleaseActions(spec *v1alpha1.OmniHelmReleaseSpec, path *field.Path) []string {
	var warnings []string

	if spec.WaitForJobs && !spec.Wait {
		warnings = append(warnings, warning(path.Child("waitForJobs"), "does nothing without wait; set wait: true"))
	}

	if spec.Atomic != nil {
		warnings = append(warnings, warning(path.Child("atomic"), "the older name of rollbackOnFailure; use that"))
	}

	if spec.MaxHistory != nil && *spec.MaxHistory == 0 {
		warnings = append(warnings, warning(path.Child("maxHistory"), "0 keeps every revision, a Secret each in the workload cluster"))
	}

	return warnings
}

func validateOmniHelmReleaseSpec(obj *v1alpha1.OmniHelmRelease) field.ErrorList {
	spec, path := &obj.Spec, field.NewPath("spec")

	errs := validateReference(spec.ClusterRef, path.Child("clusterRef"), "an OmniCluster of this namespace")
	errs = append(errs, validateSecretKeyReference(spec.KubeconfigSecretRef, path.Child("kubeconfigSecretRef"),
		"the Secret that holds the kubeconfig of the workload cluster")...)

	if name := obj.EffectiveReleaseName(); len(name) > maxReleaseName || !releaseName.MatchString(name) {
		errs = append(errs, invalidName(spec.ReleaseName, name, "Helm takes lower case letters, digits, - and ., at most 53", path.Child("releaseName")))
	}

	if spec.Namespace != "" {
		errs = append(errs, validateNamespaceName(spec.Namespace, path.Child("namespace"), "a namespace")...)
	}

	errs = append(errs, validateChart(&spec.Chart, path.Child("chart"))...)
	errs = append(errs, validateReleaseActions(spec, path)...)
	errs = append(errs, validateDrift(&spec.DriftDetection, path.Child("driftDetection"))...)
	errs = append(errs, validateDependencies(spec.DependsOn, obj.Name, path.Child("dependsOn"))...)

	return append(errs, validateEnum(spec.DeletionPolicy, path.Child("deletionPolicy"), v1alpha1.ReleaseUninstall, v1alpha1.ReleaseOrphan)...)
}

// validateReleaseActions checks the settings of Helm actions.
func validateReleaseActions(spec *v1alpha1.OmniHelmReleaseSpec, path *field.Path) field.ErrorList {
	errs := validateDuration(spec.Timeout, minHelmTimeout, maxHelmTimeout, path.Child("timeout"))
	errs = append(errs, validateDuration(spec.Interval, minHelmInterval, noLimit, path.Child("interval"))...)

	if spec.Atomic != nil && spec.RollbackOnFailure != nil && *spec.Atomic != *spec.RollbackOnFailure {
		errs = append(errs, field.Invalid(path.Child("atomic"), *spec.Atomic,
			"is the older name of rollbackOnFailure, which says the opposite: remove one of the two"))
	}

	if spec.MaxHistory != nil && *spec.MaxHistory < 0 {
		errs = append(errs, field.Invalid(path.Child("maxHistory"), *spec.MaxHistory, "must be 0 or more; 0 keeps every revision"))
	}

	if spec.Retries != nil && *spec.Retries < 0 {
		errs = append(errs, field.Invalid(path.Child("retries"), *spec.Retries, "must be 0 or more"))
	}

	return errs
}

func validateDrift(drift *v1alpha1.DriftDetection, path *field.Path) field.ErrorList {
	errs := validateEnum(drift.Mode, path.Child("mode"), v1alpha1.DriftDisabled, v1alpha1.DriftWarn, v1alpha1.DriftCorrect)

	for i := range drift.Ignore {
		errs = append(errs, validateJSONPointers(drift.Ignore[i].Paths, path.Child("ignore").Index(i).Child("paths"))...)
	}

	return errs
}

// validateJSONPointers checks a set of JSON pointers (RFC 6901) below the root.
func validateJSONPointers(pointers []string, path *field.Path) field.ErrorList {
	if len(pointers) == 0 {
		return field.ErrorList{field.Required(path, "name what to leave out, such as /spec/replicas")}
	}

	var errs field.ErrorList

	seen := make(map[string]bool, len(pointers))

	for i, pointer := range pointers {
		switch {
		case !jsonPointer.MatchString(pointer):
			errs = append(errs, field.Invalid(path.Index(i), pointer, "must be a JSON pointer such as /spec/replicas, with ~1 for / and ~0 for ~ inside a name"))
		case seen[pointer]:
			errs = append(errs, field.Duplicate(path.Index(i), pointer))
		}

		seen[pointer] = true
	}

	return errs
}

func validateDependencies(refs []v1alpha1.LocalObjectReference, self string, path *field.Path) field.ErrorList {
	var errs field.ErrorList

	seen := make(map[string]bool, len(refs))

	for i, ref := range refs {
		at := path.Index(i)
		errs = append(errs, validateReference(ref, at, "an OmniHelmRelease of this namespace")...)

		switch name := ref.Name; {
		case name == "":
		case name == self:
			errs = append(errs, field.Invalid(at.Child("name"), name, "a release cannot wait for itself: remove the entry"))
		case seen[name]:
			errs = append(errs, field.Duplicate(at.Child("name"), name))
		}

		seen[ref.Name] = true
	}

	return errs
}
