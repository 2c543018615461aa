package validation

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

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
