// Package validation holds every rule that can be decided from one object of omni.texashpc.com
// alone, for the API server. All functions are pure: they read the objects and nothing else.
//
// Each kind has one file with functions named alike: Validate<Kind> (create), Validate<Kind>Update
// (main resource), and, as far as it needs them, Validate<Kind>StatusUpdate (status subresource; else
// ValidateStatusUpdate), WarningsFor<Kind> (advice that refuses nothing) and Validate<Kind>Scale.
// Rules that need a second object belong to admission; rules that need every document of a cluster
// belong to the controller.
//
// Errors carry the exact path and name the remedy. Values that can hold a credential (patches,
// URLs with user info) are never repeated in an error.
package validation

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
)

// noLimit is the upper bound for durations without one: the largest duration.
const noLimit = time.Duration(1<<63 - 1)

// parseDuration reads a duration that lies between two bounds, inclusive. An empty one is 0 and valid.
func parseDuration(text v1alpha1.Duration, lowest, highest time.Duration, path *field.Path) (time.Duration, field.ErrorList) {
	if text == "" {
		return 0, nil
	}

	value, err := time.ParseDuration(string(text))
	if err != nil {
		return 0, field.ErrorList{field.Invalid(path, text, "must be a duration such as 30s, 10m or 24h")}
	}

	if value < lowest {
		return value, field.ErrorList{field.Invalid(path, text, fmt.Sprintf("must be at least %s", short(lowest)))}
	}

	if value > highest {
		return value, field.ErrorList{field.Invalid(path, text, fmt.Sprintf("must be at most %s", short(highest)))}
	}

	return value, nil
}

// requireDuration is parseDuration for a field that has to be set.
func requireDuration(text v1alpha1.Duration, lowest, highest time.Duration, path *field.Path, what string) (time.Duration, field.ErrorList) {
	if text == "" {
		return 0, field.ErrorList{field.Required(path, what)}
	}

	return parseDuration(text, lowest, highest, path)
}

// validateDuration is parseDuration for callers that need only the errors.
func validateDuration(text v1alpha1.Duration, lowest, highest time.Duration, path *field.Path) field.ErrorList {
	_, errs := parseDuration(text, lowest, highest, path)

	return errs
}

// short formats whole hours and minutes without zeros: 10m, not 10m0s.
func short(d time.Duration) string {
	switch {
	case d > 0 && d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d > 0 && d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	default:
		return d.String()
	}
}

// validateEnum checks that a value is one of the allowed ones. An empty value stands for the default.
func validateEnum[T ~string](value T, path *field.Path, words ...T) field.ErrorList {
	if value == "" || slices.Contains(words, value) {
		return nil
	}

	return field.ErrorList{field.NotSupported(path, value, words)}
}

// maxOmniName is the largest length of a cluster's or worker set's name in Omni.
const maxOmniName = 63

// Compiled once: compiling it for each write took a twentieth of the time of a create.
var omniName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// isOmniName reports whether Omni accepts the text as the name of a cluster or worker set.
func isOmniName(name string) bool { return len(name) <= maxOmniName && omniName.MatchString(name) }

// isUUID reports whether the text is a UUID in one of the spellings that Omni accepts.
func isUUID(text string) bool {
	_, ok := v1alpha1.CanonicalUUID(text)

	return ok
}

// invalidName returns the error for an effective name that breaks its rule. Its field is the one in the spec, even if
// the name comes from metadata.name: only the field in the spec can be chosen freely.
func invalidName(specified, effective, rule string, path *field.Path) *field.Error {
	if specified == "" {
		return field.Invalid(path, effective, "metadata.name cannot serve here, set it: "+rule)
	}

	return field.Invalid(path, effective, rule)
}

// maxPort is the largest TCP port.
const maxPort = 65535

// invalidValue is an Invalid error that does not repeat the value, which may be long or hold a credential: the library puts the
// message of a refusal into the audit log.
func invalidValue(path *field.Path, detail string) *field.Error {
	return field.Invalid(path, field.OmitValueType{}, detail)
}

// invalidURL is invalidValue for URLs.
func invalidURL(path *field.Path, detail string) *field.Error {
	return invalidValue(path, detail)
}

// parseURL parses a URL with a host and one of the schemes, without user info or fragment. It returns nil and the
// error if the text is not such a URL. Errors never repeat the text.
func parseURL(text string, path *field.Path, example string, schemes ...string) (*url.URL, field.ErrorList) {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Scheme == "" || parsed.Opaque != "" {
		return nil, field.ErrorList{invalidURL(path, "must be a URL such as "+example)}
	}

	var errs field.ErrorList

	if !slices.Contains(schemes, parsed.Scheme) {
		errs = append(errs, invalidURL(path, "must begin with "+strings.Join(schemes, "://, ")+"://"))
	}

	if parsed.Hostname() == "" {
		errs = append(errs, invalidURL(path, "must name a host, such as "+example))
	}

	if port := parsed.Port(); port != "" {
		if number, err := strconv.Atoi(port); err != nil || number < 1 || number > maxPort {
			errs = append(errs, invalidURL(path, "must have a port from 1 to 65535"))
		}
	}

	if parsed.User != nil {
		errs = append(errs, invalidURL(path, "must have no user info: credentials belong in a Secret"))
	}

	if parsed.Fragment != "" || strings.HasSuffix(text, "#") {
		errs = append(errs, invalidURL(path, "must have no fragment: remove the # and what follows"))
	}

	return parsed, errs
}

// version is a semantic version with a leading v; pre-releases and build metadata are allowed.
var version = regexp.MustCompile(`^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)` +
	`(-(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?` +
	`(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

// validateVersions checks the versions of a cluster, and the features that need a certain version: first with our own
// rule, then with the rules that Omni's client library shares with the server.
func validateVersions(spec *v1alpha1.OmniClusterSpec, path *field.Path) field.ErrorList {
	kubernetesPath, talosPath := path.Child("kubernetes", "version"), path.Child("talos", "version")

	kubernetes := omnires.ClusterValidator{
		KubernetesVersion: spec.Kubernetes.Version, SkipClusterIDCheck: true, SkipTalosVersionCheck: true,
	}
	talos := omnires.ClusterValidator{
		TalosVersion: spec.Talos.Version, SkipClusterIDCheck: true, SkipKubernetesVersionCheck: true,
		RequireVPrefixOnTalosVersionCheck: true,
	}

	errs := validateVersion(spec.Kubernetes.Version, kubernetes, kubernetesPath, "v1.35.1")

	talosErrs := validateVersion(spec.Talos.Version, talos, talosPath, "v1.13.3")
	if len(talosErrs) > 0 || !spec.Features.DiskEncryption {
		return append(errs, talosErrs...)
	}

	talos.EncryptionEnabled = true
	if err := talos.Validate(); err != nil {
		errs = append(errs, field.Forbidden(path.Child("features", "diskEncryption"), "needs Talos v1.5.0 or newer: raise spec.talos.version"))
	}

	return errs
}

func validateVersion(text string, validator omnires.ClusterValidator, path *field.Path, example string) field.ErrorList {
	if text == "" {
		return field.ErrorList{field.Required(path, "set a version such as "+example)}
	}

	if !version.MatchString(text) || validator.Validate() != nil {
		return field.ErrorList{field.Invalid(path, text, "must be a semantic version with a leading v, such as "+example)}
	}

	return nil
}

// ownPrefix is the prefix of the labels and annotations that the controller writes itself.
const ownPrefix = v1alpha1.GroupName + "/"

// validateOmniMetadata checks labels and annotations that are copied to a resource in Omni. Omni does not limit their
// syntax; only its own prefix is not allowed, and ours in annotations, where our marks are.
func validateOmniMetadata(labels, annotations map[string]string, path *field.Path) field.ErrorList {
	errs := refuseReserved(labels, path.Child("labels"), omnis())

	return append(errs, refuseReserved(annotations, path.Child("annotations"), omnis(), ours())...)
}

// validateSecretMetadata checks labels and annotations that are written to a Secret.
func validateSecretMetadata(labels, annotations map[string]string, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(labels, path.Child("labels"))
	errs = append(errs, refuseReserved(labels, path.Child("labels"), ours())...)
	errs = append(errs, apivalidation.ValidateAnnotations(annotations, path.Child("annotations"))...)

	return append(errs, refuseReserved(annotations, path.Child("annotations"), ours())...)
}

// reserved is a prefix of keys that a user cannot choose.
type reserved struct{ prefix, why string }

func omnis() reserved { return reserved{omnires.SystemLabelPrefix, "it is Omni's own"} }
func ours() reserved  { return reserved{ownPrefix, "the controller writes these keys itself"} }

// refuseReserved refuses keys with one of the prefixes, and empty keys, in the order of the keys.
func refuseReserved(entries map[string]string, path *field.Path, all ...reserved) field.ErrorList {
	var errs field.ErrorList

	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if key == "" {
			errs = append(errs, field.Required(path.Key(key), "give the entry a key"))
		}

		for _, one := range all {
			if strings.HasPrefix(key, one.prefix) {
				errs = append(errs, field.Forbidden(path.Key(key), "the prefix "+one.prefix+" cannot be used, "+one.why+": choose another key"))
			}
		}
	}

	return errs
}

// maxSpec is the largest spec, in bytes of JSON. Patches can make an object larger than one request can be. The rest
// of etcd's 1.5 MiB is room for metadata and status.
const maxSpec = 1 << 20

// MaxSpecDepth is how deep a spec may be nested. The kinds' rules allow less for free-form blocks, but do not run
// while an object is being deleted; this limit always holds. JSON that is nested 10,000 levels deep can be written.
// Stored inside an object it is even deeper and cannot be read again, and then nobody can list the kind.
const MaxSpecDepth = 256

// maxSpecValues is how many maps, lists, keys and values a spec may have. Without it, many patches, each within the
// limit of a request, would make a spec that every later write has to hold in memory, at a kilobyte and more for each
// value.
const maxSpecValues = 50_000

// ValidateSpecSize returns an error if a spec, encoded as JSON, is too large to be stored, nested too deep, or has too
// many values.
func ValidateSpecSize(encoded []byte) field.ErrorList {
	if foreign.DepthOfJSON(encoded) > MaxSpecDepth {
		return field.ErrorList{field.Invalid(field.NewPath("spec"), field.OmitValueType{},
			fmt.Sprintf("is nested deeper than %d levels: make it flatter", MaxSpecDepth))}
	}

	limits := foreign.Limits{Bytes: math.MaxInt, Depth: MaxSpecDepth, Nodes: maxSpecValues, Expanded: math.MaxInt}
	if err := foreign.Check(context.Background(), encoded, limits); err != nil { // JSON, which waits for nothing
		return field.ErrorList{field.Invalid(field.NewPath("spec"), field.OmitValueType{},
			fmt.Sprintf("has more than %d values: read parts of it with valueFrom", maxSpecValues))}
	}

	if len(encoded) <= maxSpec {
		return nil
	}

	return field.ErrorList{{
		Type:     field.ErrorTypeTooLong,
		Field:    "spec",
		BadValue: "",
		Detail: fmt.Sprintf("has %d KiB, at most %d KiB fit: read parts of it with valueFrom",
			(len(encoded)+1023)>>10, maxSpec>>10),
	}}
}
