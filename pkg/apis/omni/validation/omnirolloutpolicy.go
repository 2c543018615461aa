package validation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	apivalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// Limits of an OmniRolloutPolicy.
const (
	maxChanges          = 6 // one of each kind
	maxStages           = 10
	maxWindows          = 14
	maxFreezes          = 20
	maxFailedClusters   = 100
	maxSoakTime         = 720 * time.Hour
	maxArrivalTime      = 24 * time.Hour
	minProgressDeadline = 10 * time.Minute
	maxProgressDeadline = 48 * time.Hour
	maxPromotionTime    = 7 * 24 * time.Hour
	maxStageName        = 63 - len("promote-") // in characters, so that an annotation can end with it
)

// ValidateOmniRolloutPolicy checks a new OmniRolloutPolicy.
func ValidateOmniRolloutPolicy(obj *v1alpha1.OmniRolloutPolicy) field.ErrorList {
	errs := validateMeta(&obj.ObjectMeta)
	errs = append(errs, validatePromotions(obj, nil, time.Now())...)
	errs = append(errs, validateNewStageNames(obj.Spec.Stages, nil)...)

	return append(errs, validateOmniRolloutPolicySpec(&obj.Spec, field.NewPath("spec"))...)
}

// ValidateOmniRolloutPolicyUpdate checks a changed OmniRolloutPolicy. No field is immutable. A promotion is checked
// only when it is new or changed: one that has ended must not prevent other changes.
func ValidateOmniRolloutPolicyUpdate(obj, old *v1alpha1.OmniRolloutPolicy) field.ErrorList {
	return validateUpdate(change{
		meta: &obj.ObjectMeta, oldMeta: &old.ObjectMeta, spec: &obj.Spec, oldSpec: &old.Spec,
		always: validatePromotions(obj, old.Annotations, time.Now()),
		rules: func() field.ErrorList {
			return append(validateNewStageNames(obj.Spec.Stages, old.Spec.Stages), validateOmniRolloutPolicySpec(&obj.Spec, field.NewPath("spec"))...)
		},
	})
}

// ValidateOmniRolloutPolicyStatusUpdate checks a new status of an OmniRolloutPolicy.
func ValidateOmniRolloutPolicyStatusUpdate(obj, old *v1alpha1.OmniRolloutPolicy) field.ErrorList {
	errs := ValidateStatusUpdate(obj, old)
	status := field.NewPath("status")

	errs = append(errs, validateUniqueKeys(obj.Status.Stages, func(s v1alpha1.RolloutStageStatus) string { return s.Name }, status.Child("stages"), "name")...)
	errs = append(errs, validateUniqueKeys(obj.Status.Admitted, func(t v1alpha1.RolloutTicket) string { return t.Cluster }, status.Child("admitted"), "cluster")...)

	return append(errs, validateUniqueKeys(obj.Status.Failed, func(c v1alpha1.FailedCluster) string { return c.Cluster }, status.Child("failed"), "cluster")...)
}

// WarningsForOmniRolloutPolicy returns advice on an OmniRolloutPolicy, as "path: message".
func WarningsForOmniRolloutPolicy(obj *v1alpha1.OmniRolloutPolicy) []string {
	return slices.Concat(warningsForPromotions(obj.Annotations, time.Now()),
		warningsForStages(obj.Spec, field.NewPath("spec", "stages")), warningsForFreezes(obj.Spec, time.Now(), field.NewPath("spec")))
}

// warningsForPromotions warns of promotions that are over: mostly a local time was written as UTC. Those of Git may stay.
func warningsForPromotions(annotations map[string]string, now time.Time) []string {
	var warnings []string

	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if !strings.HasPrefix(key, v1alpha1.AnnotationPromotePrefix) {
			continue
		}

		if until, err := time.Parse(time.RFC3339, annotations[key]); err == nil && !until.After(now) {
			warnings = append(warnings, warning(field.NewPath("metadata", "annotations").Key(key), "is over since "+words.Time(until)+" and lets nothing begin"))
		}
	}

	return warnings
}

// warningsForStages warns of a stage that begins at any time behind one that has windows: mostly they were forgotten. A
// first stage without windows is usual.
func warningsForStages(spec v1alpha1.OmniRolloutPolicySpec, path *field.Path) []string {
	var warnings []string

	first := slices.IndexFunc(spec.Stages, func(one v1alpha1.RolloutStage) bool { return len(one.Windows) > 0 })

	for i, one := range spec.Stages {
		if first >= 0 && i > first && len(one.Windows) == 0 {
			warnings = append(warnings, warning(path.Index(i).Child("windows"), "unset, so this stage begins at any time; an earlier one has windows"))
		}
	}

	return warnings
}

// warningsForFreezes warns of freezes that are over, and of a soak time that does not end before the next freeze. Nothing
// waits for the soak time of the last stage.
func warningsForFreezes(spec v1alpha1.OmniRolloutPolicySpec, now time.Time, path *field.Path) []string {
	var (
		warnings []string
		next     time.Time
	)

	for i, freeze := range spec.Freezes {
		if !freeze.Until.After(now) {
			warnings = append(warnings, warning(path.Child("freezes").Index(i), "is over: it can be taken out"))
		}

		if freeze.From.After(now) && (next.IsZero() || freeze.From.Time.Before(next)) {
			next = freeze.From.Time
		}
	}

	for i := range len(spec.Stages) - 1 {
		soak := spec.Stages[i].SoakTime.OrDefault(v1alpha1.DefaultSoakTime.OrDefault(0))
		if !next.IsZero() && soak > next.Sub(now) {
			warnings = append(warnings, warning(path.Child("stages").Index(i).Child("soakTime"), "does not end before the next freeze"))
		}
	}

	return warnings
}

// validatePromotions checks the annotations that promote stages, if they are new or changed.
func validatePromotions(obj *v1alpha1.OmniRolloutPolicy, old map[string]string, now time.Time) field.ErrorList {
	var errs field.ErrorList

	annotations := field.NewPath("metadata", "annotations")

	stages := map[string]bool{}
	for i := range obj.Spec.Stages {
		stages[obj.Spec.Stages[i].Name] = true
	}

	for _, key := range slices.Sorted(maps.Keys(obj.Annotations)) {
		name, promotes := strings.CutPrefix(key, v1alpha1.AnnotationPromotePrefix)
		value := obj.Annotations[key]

		if before, had := old[key]; !promotes || had && before == value {
			continue
		}

		until, err := time.Parse(time.RFC3339, value)

		switch {
		case !stages[name]:
			errs = append(errs, field.Invalid(annotations.Key(key), value, "the policy has no such stage: end the key with the name of one"))
		case err != nil:
			errs = append(errs, field.Invalid(annotations.Key(key), value, "say until when the stage may begin, such as 2026-11-28T06:00:00Z"))
		case until.Sub(now) > maxPromotionTime:
			errs = append(errs, field.Invalid(annotations.Key(key), value, "must be at most 7 days ahead: promote the stage again later"))
		}
	}

	return errs
}

// validateNewStageNames refuses names for which there can be no annotation that promotes the stage. A stage that has such a name
// keeps it: spec.hold has to work whatever the stages are called.
func validateNewStageNames(stages, before []v1alpha1.RolloutStage) field.ErrorList {
	if len(stages) > maxStages {
		return nil // they are refused without a look at each
	}

	var errs field.ErrorList

	for i := range stages {
		name := stages[i].Name
		had := slices.ContainsFunc(before, func(one v1alpha1.RolloutStage) bool { return one.Name == name })

		if len(name) > maxStageName && len(name) <= apivalidation.DNS1123LabelMaxLength && !had {
			errs = append(errs, field.Invalid(field.NewPath("spec", "stages").Index(i).Child("name"), name, fmt.Sprintf(
				"must have at most %d characters: the annotation that promotes the stage, %s<name>, may have 63 behind the slash",
				maxStageName, v1alpha1.AnnotationPromotePrefix)))
		}
	}

	return errs
}

func validateOmniRolloutPolicySpec(spec *v1alpha1.OmniRolloutPolicySpec, path *field.Path) field.ErrorList {
	errs := requireSelector(spec.ClusterSelector, path.Child("clusterSelector"), "select OmniClusters by their labels; {} selects all")

	errs = append(errs, validateChangeKinds(spec.Changes, path.Child("changes"))...)
	errs = append(errs, validateStages(spec.Stages, path.Child("stages"))...)
	errs = append(errs, validateDuration(spec.ArrivalTime, 0, maxArrivalTime, path.Child("arrivalTime"))...)
	errs = append(errs, validateDuration(spec.ProgressDeadline, minProgressDeadline, maxProgressDeadline, path.Child("progressDeadline"))...)

	if spec.MaxFailed < 0 || spec.MaxFailed > maxFailedClusters {
		errs = append(errs, field.Invalid(path.Child("maxFailed"), spec.MaxFailed, fmt.Sprintf("must be from 0 to %d", maxFailedClusters)))
	}

	return append(errs, validateFreezes(spec.Freezes, path.Child("freezes"))...)
}

func validateChangeKinds(changes []v1alpha1.ChangeKind, path *field.Path) field.ErrorList {
	switch {
	case changes != nil && len(changes) == 0:
		return field.ErrorList{field.Required(path, "name at least one kind of change, or leave it out for all")}
	case len(changes) > maxChanges:
		return field.ErrorList{field.TooMany(path, len(changes), maxChanges)}
	}

	var errs field.ErrorList

	for i, kind := range changes {
		errs = append(errs, requireEnum(kind, path.Index(i),
			v1alpha1.ChangeKubernetesVersion, v1alpha1.ChangeTalosVersion, v1alpha1.ChangeMachineConfig, v1alpha1.ChangeMachineImage,
			v1alpha1.ChangeMachineRemoval, v1alpha1.ChangeManifests)...)

		if slices.Contains(changes[:i], kind) {
			errs = append(errs, field.Duplicate(path.Index(i), kind))
		}
	}

	return errs
}

func requireSelector(selector *v1alpha1.ClusterSelector, path *field.Path, what string) field.ErrorList {
	if selector == nil {
		return field.ErrorList{field.Required(path, what)}
	}

	return metav1validation.ValidateLabelSelector(selector.LabelSelector(), metav1validation.LabelSelectorValidationOptions{}, path)
}

func requireEnum[T ~string](value T, path *field.Path, words ...T) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.NotSupported(path, value, words)}
	}

	return validateEnum(value, path, words...)
}

func validateStages(stages []v1alpha1.RolloutStage, path *field.Path) field.ErrorList {
	switch {
	case len(stages) == 0:
		return field.ErrorList{field.Required(path, "name at least one stage")}
	case len(stages) > maxStages:
		return field.ErrorList{field.TooMany(path, len(stages), maxStages)}
	}

	var errs field.ErrorList

	seen := map[string]bool{}

	for i := range stages {
		one, at := &stages[i], path.Index(i)

		for _, problem := range apivalidation.IsDNS1123Label(one.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), one.Name, problem))
		}

		if seen[one.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), one.Name))
		}

		seen[one.Name] = true
		errs = append(errs, validateStage(one, i == len(stages)-1, at)...)
	}

	return errs
}

func validateStage(one *v1alpha1.RolloutStage, last bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList

	switch {
	case !last:
		errs = append(errs, requireSelector(one.ClusterSelector, path.Child("clusterSelector"), "select the stage's clusters; only the last stage takes the rest")...)
	case one.ClusterSelector != nil:
		errs = append(errs, field.Forbidden(path.Child("clusterSelector"), "the last stage takes all clusters that no other takes: leave it out"))
	}

	errs = append(errs, validateShare(one.MaxConcurrent, rollout.ConcurrentOf, path.Child("maxConcurrent"))...)
	errs = append(errs, validateShare(one.MinQualified, rollout.NeededOf, path.Child("minQualified"))...)
	errs = append(errs, validateDuration(one.SoakTime, 0, maxSoakTime, path.Child("soakTime"))...)
	errs = append(errs, validateEnum(one.Promotion, path.Child("promotion"), v1alpha1.PromotionAutomatic, v1alpha1.PromotionManual)...)

	if len(one.Windows) > maxWindows {
		return append(errs, field.TooMany(path.Child("windows"), len(one.Windows), maxWindows))
	}

	for i := range one.Windows {
		errs = append(errs, validateWindow(&one.Windows[i], path.Child("windows").Index(i))...)
	}

	return errs
}

// validateShare checks a number or a percentage with the function that reads it.
func validateShare(value *intstr.IntOrString, read func(intstr.IntOrString, int) (int, error), path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}

	if _, err := read(*value, 1); err != nil {
		return field.ErrorList{field.Invalid(path, value.String(), "must be a number from 1 to 100, or a percentage from 1% to 100%")}
	}

	return nil
}

func validateFreezes(freezes []v1alpha1.RolloutFreeze, path *field.Path) field.ErrorList {
	const longest = 120 * 24 * time.Hour

	if len(freezes) > maxFreezes {
		return field.ErrorList{field.TooMany(path, len(freezes), maxFreezes)}
	}

	var errs field.ErrorList

	seen := map[string]bool{}

	for i, freeze := range freezes {
		at := path.Index(i)

		for _, problem := range apivalidation.IsDNS1123Label(freeze.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), freeze.Name, problem))
		}

		if seen[freeze.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), freeze.Name))
		}

		seen[freeze.Name] = true

		switch {
		case freeze.From.IsZero():
			errs = append(errs, field.Required(at.Child("from"), "say when it begins, such as 2026-12-17T23:00:00Z"))
		case freeze.Until.IsZero():
			errs = append(errs, field.Required(at.Child("until"), "say when it ends, such as 2027-01-06T23:00:00Z"))
		case !freeze.Until.After(freeze.From.Time):
			errs = append(errs, field.Invalid(at.Child("until"), freeze.Until.Format(time.RFC3339), "must be after from"))
		case freeze.Until.Sub(freeze.From.Time) > longest:
			errs = append(errs, field.Invalid(at.Child("until"), freeze.Until.Format(time.RFC3339), "must be at most 120 days after from: make two of it"))
		}
	}

	return errs
}
