package omni

import (
	"regexp"
	"strings"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// Message returns a text for conditions, events and logs: the kind of failure in plain words, then the error's own
// text, without the gRPC wrapping, on one line, without long opaque tokens, and never longer than redact.MaxBytes. For
// nil it returns "".
func Message(err error) string {
	if err == nil {
		return ""
	}

	said := Sanitize(expiredText.ReplaceAllLiteralString(err.Error(), ErrKeyExpired.Error()))

	// Errors of Apply already have the lead, after the resource's name.
	if lead := leads[Classify(err)]; lead != "" && !strings.Contains(said, lead) {
		said = lead + ": " + said
	}

	return redact.Bounded(said, redact.MaxBytes)
}

// Sanitize makes one bounded line of any external text: it removes the gRPC wrapping, and everything that looks like a
// secret.
func Sanitize(text string) string {
	return redact.Line(plainNames.Replace(grpcWrapping.ReplaceAllString(text, "")))
}

// plainNames replaces errors of gRPC's resolver with their meaning.
//
//nolint:gochecknoglobals // a constant table
var plainNames = strings.NewReplacer(
	"name resolver error: produced zero addresses", "the host name of the endpoint does not resolve to an address (DNS)",
)

// leads begin the message of a condition. Classes whose own text is clear enough have none.
//
//nolint:gochecknoglobals // a constant table
var leads = map[Class]string{
	ClassTransient:       "Omni failed to answer",
	ClassRefused:         "Omni refuses this",
	ClassConflict:        "changed in Omni meanwhile",
	ClassGone:            "not found in Omni",
	ClassDenied:          "the service account's role does not allow this (Operator is needed)",
	ClassUnauthenticated: "Omni does not accept this service account key (it was revoked, or made for another Omni, or the clock here is more than 5 minutes from Omni's)",
	ClassKeyExpired:      "the service account key has expired",
	ClassUnreachable:     "Omni cannot be reached",
	ClassTLS:             "the TLS connection to Omni fails",
}

// expiredText matches how the library, which signs each call, reports an expired key.
var expiredText = regexp.MustCompile(`(?:failed to sign message: |gopenpgp: |openpgp: )(?:[^"]*: )?no valid signing keys`)

var grpcWrapping = regexp.MustCompile(`rpc error: code = [A-Za-z]+ desc = `)
