package validation

import (
	"maps"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// ownPrefix is the prefix of the labels and annotations that the controller writes itself.
const ownPrefix = v1alpha1.GroupName + "/"

// validateOmniMetadata checks labels and annotations that are copied to a resource in Omni. Omni does not limit their
// syntax; only its own prefix is not allowed.
func validateOmniMetadata(labels, annotations map[string]string, path *field.Path) field.ErrorList {
	errs := refusePrefix(labels, path.Child("labels"), omnires.SystemLabelPrefix, "it is Omni's own")

	return append(errs, refusePrefix(annotations, path.Child("annotations"), omnires.SystemLabelPrefix, "it is Omni's own")...)
}

// validateSecretMetadata checks labels and annotations that are written to a Secret.
func validateSecretMetadata(labels, annotations map[string]string, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(labels, path.Child("labels"))
	errs = append(errs, refusePrefix(labels, path.Child("labels"), ownPrefix, "the controller writes these keys itself")...)
	errs = append(errs, apivalidation.ValidateAnnotations(annotations, path.Child("annotations"))...)

	return append(errs, refusePrefix(annotations, path.Child("annotations"), ownPrefix, "the controller writes these keys itself")...)
}

// refusePrefix refuses keys with the prefix, and empty keys, in the order of the keys.
func refusePrefix(entries map[string]string, path *field.Path, prefix, why string) field.ErrorList {
	var errs field.ErrorList

	for _, key := range slices.Sorted(maps.Keys(entries)) {
		switch {
		case key == "":
			errs = append(errs, field.Required(path.Key(key), "give the entry a key"))
		case strings.HasPrefix(key, prefix):
			errs = append(errs, field.Forbidden(path.Key(key), "the prefix "+prefix+" cannot be used, "+why+": choose another key"))
		}
	}

	return errs
}
