package validation

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

const (
	ociScheme         = "oci://"
	exampleRepository = "https://charts.example.com"
	// maxChartText bounds names, versions and value paths.
	maxChartText = 253
)

var (
	// chartName matches a chart's name in a repository. It does not match paths, which could lead to the controller's
	// own disk.
	chartName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	// chartVersion is a version or a range of versions, as Helm reads them.
	chartVersion = regexp.MustCompile(`^[0-9A-Za-z.+~^<>=!*|, -]+$`)
	chartDigest  = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

func validateChart(chart *v1alpha1.HelmChart, path *field.Path) field.ErrorList {
	errs := validateChartSource(chart, path)

	if chart.Version != "" && (len(chart.Version) > maxChartText || !chartVersion.MatchString(chart.Version)) {
		errs = append(errs, field.Invalid(path.Child("version"), chart.Version, "must be a version such as 1.2.3, or a range such as ~1.2"))
	}

	if chart.Digest != "" && !chartDigest.MatchString(chart.Digest) {
		errs = append(errs, field.Invalid(path.Child("digest"), chart.Digest, "must be sha256: and 64 hexadecimal digits in lower case"))
	}

	if chart.Values != nil {
		errs = append(errs, validateFreeForm(path.Child("values"), "read parts of it with valuesFrom", *chart.Values)...)
	}

	for i := range chart.ValuesFrom {
		errs = append(errs, validateValuesReference(&chart.ValuesFrom[i], path.Child("valuesFrom").Index(i))...)
	}

	if chart.AuthSecretRef != nil {
		errs = append(errs, validateReference(*chart.AuthSecretRef, path.Child("authSecretRef"), "the Secret that holds the credentials")...)
	}

	if chart.CASecretRef != nil {
		errs = append(errs, validateReference(*chart.CASecretRef, path.Child("caSecretRef"), "the Secret that holds ca.crt")...)
	}

	if chart.Verify != nil {
		errs = append(errs, validateSecretKeyReference(chart.Verify.KeyringSecretRef, path.Child("verify", "keyringSecretRef"),
			"the Secret that holds the public keyring")...)
	}

	return errs
}

// validateChartSource checks that repository and chart together name one chart.
func validateChartSource(chart *v1alpha1.HelmChart, path *field.Path) field.ErrorList {
	at, repository := path.Child("chart"), path.Child("repository")

	if chart.Chart == "" {
		return field.ErrorList{field.Required(at, "name a chart of the repository, or set an oci:// URL")}
	}

	if strings.HasPrefix(chart.Chart, ociScheme) {
		// With an OCI reference in chart, the repository is not used, so any URL is accepted.
		return append(validateOCIChart(chart.Chart, at), validateUnusedRepository(chart.Repository, repository)...)
	}

	var errs field.ErrorList

	if len(chart.Chart) > maxChartText || !chartName.MatchString(chart.Chart) {
		errs = append(errs, invalidValue(at, "must be the name of a chart in the repository, without a path, or an oci:// URL"))
	}

	switch {
	case chart.Repository == "":
		errs = append(errs, field.Required(repository, "set the URL of the chart repository, or make chart an oci:// URL"))
	case strings.HasPrefix(chart.Repository, ociScheme):
		errs = append(errs, invalidURL(repository, "must be an http or https URL: write an OCI chart whole in chart, as oci://registry/path/name"))
	default:
		_, urlErrs := parseURL(chart.Repository, repository, exampleRepository, "https", "http")
		errs = append(errs, urlErrs...)
	}

	return errs
}

// validateUnusedRepository refuses a repository that would show a password in the object.
func validateUnusedRepository(repository string, path *field.Path) field.ErrorList {
	if repository == "" {
		return nil
	}

	_, errs := parseURL(repository, path, exampleRepository, "https", "http", "oci")

	return errs
}

func validateOCIChart(chart string, path *field.Path) field.ErrorList {
	parsed, errs := parseURL(chart, path, "oci://registry.example.com/charts/name", "oci")
	if parsed != nil && strings.Trim(parsed.Path, "/") == "" {
		errs = append(errs, invalidURL(path, "must name the chart too, such as oci://registry.example.com/charts/name"))
	}

	return errs
}

func validateValuesReference(ref *v1alpha1.HelmValuesReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList

	if ref.Kind == "" {
		errs = append(errs, field.Required(path.Child("kind"), "choose ConfigMap or Secret"))
	}

	errs = append(errs, validateEnum(ref.Kind, path.Child("kind"), v1alpha1.ValuesConfigMap, v1alpha1.ValuesSecret)...)
	errs = append(errs, validateObjectName(ref.Name, path.Child("name"), "the ConfigMap or Secret that holds the values")...)

	if ref.Key != "" {
		errs = append(errs, validateDataKey(ref.Key, path.Child("key"))...)
	}

	if len(ref.TargetPath) > maxChartText {
		errs = append(errs, field.TooLong(path.Child("targetPath"), ref.TargetPath, maxChartText))
	}

	return errs
}
