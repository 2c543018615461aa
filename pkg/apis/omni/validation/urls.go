package validation

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxPort is the largest TCP port.
const maxPort = 65535

// invalidValue is an Invalid error that does not repeat the value, which may be long or hold a credential.
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
