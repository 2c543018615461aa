package charts

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// Reason says what kind of failure an Error is.
type Reason string

// The reasons.
const (
	// NotFound: the repository answers, and has no such chart or version.
	NotFound Reason = "NotFound"
	// Unauthorized: the repository does not accept the credentials, or wants some.
	Unauthorized Reason = "Unauthorized"
	// TooLarge: an index or a chart exceeds its limit, packed or unpacked, or there are too many versions for a range.
	TooLarge Reason = "TooLarge"
	// DigestMismatch: what was downloaded is not what was asked for.
	DigestMismatch Reason = "DigestMismatch"
	// ForbiddenAddress: the repository, or a redirect of it, leads to an address that may not be dialled.
	ForbiddenAddress Reason = "ForbiddenAddress"
	// Timeout: the repository did not answer in time.
	Timeout Reason = "Timeout"
	// Unreachable: no connection, or an answer that only a fault explains.
	Unreachable Reason = "Unreachable"
	// TLSFailed: the repository's certificate is not accepted.
	TLSFailed Reason = "TLSFailed"
	// Unverified: the provenance file is missing, or is not signed by a key of the keyring.
	Unverified Reason = "Unverified"
	// Refused: reading the index or the provenance file takes too much memory or time. The same text would be
	// refused again.
	Refused Reason = "Refused"
	// Unavailable: there is no process that reads it now; it has nothing to do with the chart.
	Unavailable Reason = "Unavailable"
	// Invalid: the source, index or chart cannot be used as it is.
	Invalid Reason = "Invalid"
)

// Temporary reports whether the same request may succeed without anybody's help.
func (r Reason) Temporary() bool { return r == Timeout || r == Unreachable || r == Unavailable }

// Error is why a chart could not be had. Its text is fit for conditions.
type Error struct {
	// Reason is the kind of failure.
	Reason Reason
	// Message says what failed, where, and what to do.
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// fail makes an Error.
func fail(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// explain classifies an error of the network while at was asked. URLs that the
// error repeats are dropped: those of redirects can hold signatures.
func explain(err error, at string) error {
	var (
		known     *Error
		forbidden *dialguard.ForbiddenError
		timeout   net.Error
		location  *url.Error
	)

	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &forbidden):
		return fail(ForbiddenAddress, "%s: %s", at, forbidden)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fail(Timeout, "%s did not answer in time", at)
	case errors.Is(err, context.Canceled):
		return fail(Unreachable, "%s: the request was cancelled", at)
	case isTLS(err):
		return fail(TLSFailed, "%s: %s; set caSecretRef if a private authority signed it", at, innermost(err))
	}

	if errors.As(err, &location) {
		err = location.Err
	}

	return fail(Unreachable, "%s: %s", at, redact.Line(err.Error()))
}

func isTLS(err error) bool {
	var (
		unknown      x509.UnknownAuthorityError
		hostname     x509.HostnameError
		invalid      x509.CertificateInvalidError
		verification *tls.CertificateVerificationError
	)

	return errors.As(err, &verification) || errors.As(err, &unknown) || errors.As(err, &hostname) || errors.As(err, &invalid)
}

// innermost is the text of the last error of a chain, the one that says what is wrong.
func innermost(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return redact.Line(err.Error())
		}

		err = next
	}
}
