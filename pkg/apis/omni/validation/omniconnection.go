package validation

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"net/url"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// exampleEndpoint shows users what an endpoint looks like.
const exampleEndpoint = "https://omni.example.com"

// ValidateOmniConnection checks a new OmniConnection.
func ValidateOmniConnection(obj *v1alpha1.OmniConnection) field.ErrorList {
	return append(validateMeta(&obj.ObjectMeta), validateOmniConnectionSpec(&obj.Spec, field.NewPath("spec"))...)
}

// ValidateOmniConnectionUpdate checks a changed OmniConnection.
func ValidateOmniConnectionUpdate(obj, old *v1alpha1.OmniConnection) field.ErrorList {
	return validateUpdate(change{
		meta: &obj.ObjectMeta, oldMeta: &old.ObjectMeta, spec: &obj.Spec, oldSpec: &old.Spec,
		rules: func() field.ErrorList { return validateOmniConnectionSpec(&obj.Spec, field.NewPath("spec")) },
	})
}

// WarningsForOmniConnection returns advice on an OmniConnection, as "path: message".
func WarningsForOmniConnection(obj *v1alpha1.OmniConnection) []string {
	var warnings []string

	spec := field.NewPath("spec")

	if endpoint, err := url.Parse(obj.Spec.Endpoint); err == nil {
		if endpoint.Scheme == "http" || endpoint.Scheme == "grpc" {
			warnings = append(warnings, warning(spec.Child("endpoint"), "the connection is not encrypted; use https"))
		}

		// A warning, not an error: a rule that is newer than the object must not refuse a stored object.
		if endpoint.Path != "" && endpoint.Path != "/" {
			warnings = append(warnings, warning(spec.Child("endpoint"), "the controller refuses a path: give only scheme, host and port"))
		}
	}

	if obj.Spec.InsecureSkipTLSVerify {
		warnings = append(warnings, warning(spec.Child("insecureSkipTLSVerify"), "any server is believed; set caBundle instead"))
	}

	return warnings
}

func validateOmniConnectionSpec(spec *v1alpha1.OmniConnectionSpec, path *field.Path) field.ErrorList {
	errs := validateEndpoint(spec.Endpoint, path.Child("endpoint"))
	errs = append(errs, validateSecretKeyReference(spec.Auth.ServiceAccountSecretRef,
		path.Child("auth", "serviceAccountSecretRef"), "the Secret that holds the Omni service account key")...)

	if len(spec.CABundle) == 0 {
		return errs
	}

	if spec.InsecureSkipTLSVerify {
		errs = append(errs, field.Forbidden(path.Child("insecureSkipTLSVerify"), "cannot be combined with caBundle: unset one of them"))
	}

	return append(errs, validateCABundle(spec.CABundle, path.Child("caBundle"))...)
}

// validateEndpoint checks the URL of an Omni. Errors never repeat the value: an invalid one may hold a password.
func validateEndpoint(endpoint string, path *field.Path) field.ErrorList {
	if endpoint == "" {
		return field.ErrorList{field.Required(path, "set the URL of Omni, such as "+exampleEndpoint)}
	}

	parsed, errs := parseURL(endpoint, path, exampleEndpoint, "https", "http", "grpc")
	if parsed == nil {
		return errs
	}

	if parsed.RawQuery != "" || parsed.ForceQuery {
		errs = append(errs, invalidURL(path, "must have no query: remove the ? and what follows"))
	}

	return errs
}

// validateCABundle checks that the bundle holds certificates, all of them readable, and nothing else.
func validateCABundle(bundle []byte, path *field.Path) field.ErrorList {
	rest := bundle

	for count := 0; ; count++ {
		var block *pem.Block

		if block, rest = pem.Decode(rest); block == nil {
			if count == 0 || len(bytes.TrimSpace(rest)) > 0 {
				return field.ErrorList{invalidValue(path, "must hold PEM certificates only (-----BEGIN CERTIFICATE-----)")}
			}

			return nil
		}

		if block.Type != "CERTIFICATE" {
			return field.ErrorList{invalidValue(path, "must hold PEM certificates only: remove the keys and other blocks")}
		}

		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return field.ErrorList{invalidValue(path, "holds a certificate that cannot be read: copy it again")}
		}
	}
}
