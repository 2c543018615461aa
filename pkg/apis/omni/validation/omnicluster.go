package validation

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

const (
	minSyncInterval        = time.Second
	minHealthcheckInterval = 5 * time.Second
	// maxPlanHash is far more than the length of a hash; it bounds what a user can store in the field.
	maxPlanHash = 128
)

// ValidateOmniCluster checks a new OmniCluster.
func ValidateOmniCluster(obj *v1alpha1.OmniCluster) field.ErrorList {
	errs := validateMeta(&obj.ObjectMeta)
	errs = append(errs, validateDeletePolicy(obj)...)
	errs = append(errs, validateRolloutAnnotations(obj.Annotations, nil)...)

	return append(errs, validateOmniClusterSpec(obj, nil)...)
}

// ValidateOmniClusterUpdate checks a changed OmniCluster. The fields that identify the cluster in Omni are immutable,
// and orphan never combines with destroyMachines, not even while the object is being deleted: an edit must not
// redirect a destroy to another cluster.
func ValidateOmniClusterUpdate(obj, old *v1alpha1.OmniCluster) field.ErrorList {
	spec := field.NewPath("spec")
	always := immutable(obj.Spec.ConnectionRef.Name, old.Spec.ConnectionRef.Name, spec.Child("connectionRef", "name"),
		"a cluster cannot move to another Omni; create a new OmniCluster")
	always = append(always, immutable(obj.EffectiveClusterName(), old.EffectiveClusterName(), spec.Child("clusterName"),
		"a cluster cannot be renamed; create a new OmniCluster")...)
	always = append(always, immutable(obj.Spec.Features.DiskEncryption, old.Spec.Features.DiskEncryption,
		spec.Child("features", "diskEncryption"), "disks are encrypted when the cluster is made; create a new OmniCluster")...)
	always = append(always, validateDeletePolicy(obj)...)
	always = append(always, validateRolloutAnnotations(obj.Annotations, old.Annotations)...)

	return validateUpdate(change{
		meta: &obj.ObjectMeta, oldMeta: &old.ObjectMeta, spec: &obj.Spec, oldSpec: &old.Spec, always: always,
		rules: func() field.ErrorList { return validateOmniClusterSpec(obj, old.Spec.Patches) },
	})
}

// ValidateOmniClusterStatusUpdate checks a new status of an OmniCluster.
func ValidateOmniClusterStatusUpdate(obj, old *v1alpha1.OmniCluster) field.ErrorList {
	errs := ValidateStatusUpdate(obj, old)
	name := func(ref v1alpha1.AppliedReference) string { return ref.Name }
	status := field.NewPath("status")
	errs = append(errs, validateUniqueKeys(obj.Status.WorkersRefs, name, status.Child("workersRefs"), "name")...)

	return append(errs, validateUniqueKeys(obj.Status.MachineRefs, name, status.Child("machineRefs"), "name")...)
}

// WarningsForOmniCluster returns advice on an OmniCluster, as "path: message".
func WarningsForOmniCluster(obj *v1alpha1.OmniCluster) []string {
	spec := field.NewPath("spec")
	warnings := warningsForPatches(obj.Spec.Patches, spec.Child("patches"))

	if interval := obj.Spec.SyncInterval.OrDefault(v1alpha1.MinSyncInterval); interval < v1alpha1.MinSyncInterval {
		warnings = append(warnings, warning(spec.Child("syncInterval"), "counts as "+short(v1alpha1.MinSyncInterval)+"; changes trigger at once"))
	}

	manifests := spec.Child("kubernetes", "manifests")
	for i := range obj.Spec.Kubernetes.Manifests {
		inline := obj.Spec.Kubernetes.Manifests[i].Inline
		for j := range inline {
			warnings = append(warnings, warningsForNumbers(&inline[j], manifests.Index(i).Child("inline").Index(j))...)
		}
	}

	healthchecks := spec.Child("kubernetes", "healthchecks")
	for i := range obj.Spec.Kubernetes.Healthchecks {
		warnings = append(warnings, warningsForNumbers(obj.Spec.Kubernetes.Healthchecks[i].Job, healthchecks.Index(i).Child("job"))...)
	}

	return append(warnings, warningsForForce(obj)...)
}

// WarningsForOmniClusterUpdate returns warnings about what a change of an OmniCluster takes away, or lets happen from now on, as "path: message".
func WarningsForOmniClusterUpdate(obj, old *v1alpha1.OmniCluster) []string {
	spec := field.NewPath("spec")
	warnings := warningsForLostManifests(obj.Spec.Kubernetes.Manifests, old.Spec.Kubernetes.Manifests, spec.Child("kubernetes", "manifests"))

	if old.Spec.DeletePolicy.Orphan && !obj.Spec.DeletePolicy.Orphan && obj.Spec.ChangePolicy != v1alpha1.ChangePolicyObserve {
		warnings = append(warnings, warning(spec.Child("deletePolicy", "orphan"), "no longer set: deleting this object destroys the cluster in Omni"))
	}

	if old.Spec.ChangePolicy == v1alpha1.ChangePolicyObserve && obj.Spec.ChangePolicy != v1alpha1.ChangePolicyObserve {
		warnings = append(warnings, warning(spec.Child("changePolicy"), "no longer Observe: Omni follows the documents now; look at status.plan first"))
	}

	return warnings
}

// warningsForLostManifests returns warnings about manifests whose objects Omni deletes from the running cluster. A list that a merge patch
// replaces loses all others.
func warningsForLostManifests(manifests, old []v1alpha1.Manifest, path *field.Path) []string {
	full := map[string]bool{}
	for _, manifest := range manifests {
		full[manifest.Name] = manifest.Mode != v1alpha1.ManifestOneTime
	}

	var lost []string

	for _, manifest := range old {
		if manifest.Mode != v1alpha1.ManifestOneTime && !full[manifest.Name] {
			lost = append(lost, manifest.Name)
		}
	}

	var warnings []string
	for _, name := range lost[:min(maxWarned, len(lost))] {
		warnings = append(warnings, warning(path, fmt.Sprintf("Omni deletes the objects of %.30q that no other full manifest has", name)))
	}

	if more := len(lost) - maxWarned; more > 0 {
		warnings = append(warnings, warning(path, "Omni deletes the objects of "+words.Plural(more, "more manifest")))
	}

	return warnings
}

// annotationFluxForce with the value enabled, in any case, has Flux delete an object and make it anew when the API server
// refuses an edit of it.
const annotationFluxForce = "kustomize.toolkit.fluxcd.io/force"

func warningsForForce(obj *v1alpha1.OmniCluster) []string {
	if confirmation := obj.Spec.DeletePolicy.RequireConfirmation; confirmation != nil && *confirmation ||
		!strings.EqualFold(obj.Annotations[annotationFluxForce], "enabled") {
		return nil
	}

	return []string{warning(field.NewPath("metadata", "annotations").Key(annotationFluxForce), "Flux deletes the cluster when an edit is refused; take it off")}
}

func validateDeletePolicy(obj *v1alpha1.OmniCluster) field.ErrorList {
	policy := obj.Spec.DeletePolicy
	if !policy.Orphan || !policy.DestroyMachines {
		return nil
	}

	return field.ErrorList{field.Forbidden(field.NewPath("spec", "deletePolicy", "destroyMachines"),
		"cannot be combined with orphan: unset one of them")}
}

func validateOmniClusterSpec(obj *v1alpha1.OmniCluster, stored []v1alpha1.Patch) field.ErrorList {
	spec, path := &obj.Spec, field.NewPath("spec")

	errs := validateReference(spec.ConnectionRef, path.Child("connectionRef"), "an OmniConnection of this namespace")

	if name := obj.EffectiveClusterName(); !isOmniName(name) {
		errs = append(errs, invalidName(spec.ClusterName, name, "a cluster's name in Omni has letters, digits, - and _, at most 63", path.Child("clusterName")))
	}

	errs = append(errs, validateVersions(spec, path)...)
	errs = append(errs, validateOmniMetadata(spec.Labels, spec.Annotations, path)...)
	errs = append(errs, validateManifests(spec.Kubernetes.Manifests, path.Child("kubernetes", "manifests"))...)
	errs = append(errs, validateHealthchecks(spec.Kubernetes.Healthchecks, path.Child("kubernetes", "healthchecks"))...)
	errs = append(errs, validateDiscovery(&spec.Features, path.Child("features"))...)
	errs = append(errs, validateBackup(spec.Features.BackupConfiguration, path.Child("features", "backupConfiguration"))...)
	errs = append(errs, validatePatches(spec.Patches, stored, path.Child("patches"))...)
	errs = append(errs, validateMachineLists(spec.SystemExtensions, spec.KernelArgs, path)...)

	return append(errs, validateChanges(spec, path)...)
}

// validateDiscovery refuses what leaves a cluster without any discovery service, as Omni does.
func validateDiscovery(features *v1alpha1.OmniClusterFeatures, path *field.Path) field.ErrorList {
	if disables := features.DisablePublicDiscoveryService; disables == nil || !*disables || features.UseEmbeddedDiscoveryService {
		return nil
	}

	return field.ErrorList{field.Forbidden(path.Child("disablePublicDiscoveryService"),
		"leaves the cluster without a discovery service: set useEmbeddedDiscoveryService, too")}
}

// validateChanges checks the fields that say when changes are applied.
func validateChanges(spec *v1alpha1.OmniClusterSpec, path *field.Path) field.ErrorList {
	errs := validateEnum(spec.ChangePolicy, path.Child("changePolicy"),
		v1alpha1.ChangePolicyApply, v1alpha1.ChangePolicyConfirmDestructive, v1alpha1.ChangePolicyObserve)

	if len(spec.ApprovedPlan) > maxPlanHash {
		errs = append(errs, field.TooLong(path.Child("approvedPlan"), spec.ApprovedPlan, maxPlanHash))
	}

	return append(errs, validateDuration(spec.SyncInterval, minSyncInterval, noLimit, path.Child("syncInterval"))...)
}

func validateBackup(backup *v1alpha1.BackupConfiguration, path *field.Path) field.ErrorList {
	if backup == nil {
		return nil
	}

	_, errs := requireDuration(backup.Interval, 0, noLimit, path.Child("interval"), "set the time between two backups, such as 1h; 0s turns them off")

	return errs
}

// validateNewBlocks checks size and depth of the free-form blocks that a spec has and the old one has not. Blocks that were
// stored under older limits stay valid.
func validateNewBlocks(spec, old any) field.ErrorList {
	stored := map[string]bool{}
	eachBlock(reflect.ValueOf(old), func(block v1alpha1.FreeForm) { stored[string(block.Raw)] = true })

	var errs field.ErrorList

	eachBlock(reflect.ValueOf(spec), func(block v1alpha1.FreeForm) {
		if !stored[string(block.Raw)] {
			errs = append(errs, validateFreeForm(field.NewPath("spec"), "leave its blocks as they are, the object is being deleted", block)...)
		}
	})

	return errs
}

// eachBlock calls visit with each free-form block in a value.
func eachBlock(value reflect.Value, visit func(v1alpha1.FreeForm)) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			eachBlock(value.Elem(), visit)
		}
	case reflect.Slice:
		for i := range value.Len() {
			eachBlock(value.Index(i), visit)
		}
	case reflect.Struct:
		if block, isBlock := reflect.TypeAssert[v1alpha1.FreeForm](value); isBlock {
			visit(block)

			return
		}

		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				eachBlock(value.Field(i), visit)
			}
		}
	default:
	}
}

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
