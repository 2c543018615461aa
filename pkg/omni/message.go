package omni

import (
	"regexp"
	"strings"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// Message returns a text for conditions, events and logs: what kind of failure
// it is in plain words, then what was said, without the gRPC wrapping, on one
// line, without long opaque tokens, and never longer than redact.MaxBytes.
// Nil gives an empty text.
func Message(err error) string {
	if err == nil {
		return ""
	}

	said := Sanitize(expiredText.ReplaceAllLiteralString(err.Error(), ErrKeyExpired.Error()))

	// An error of Apply has the lead behind the resource's name already.
	if lead := leads[Classify(err)]; lead != "" && !strings.Contains(said, lead) {
		said = lead + ": " + said
	}

	return redact.Bounded(said, redact.MaxBytes)
}

// Sanitize makes one bounded line out of any text that came from outside:
// gRPC wrapping off, and everything removed that looks like a secret.
func Sanitize(text string) string {
	return redact.Line(plainNames.Replace(grpcWrapping.ReplaceAllString(text, "")))
}

// plainNames says what gRPC's resolver means.
//
//nolint:gochecknoglobals // a constant table
var plainNames = strings.NewReplacer(
	"name resolver error: produced zero addresses", "the host name of the endpoint does not resolve to an address (DNS)",
)

// leads are written for the reader of a condition; classes whose own text
// already says everything have none.
//
//nolint:gochecknoglobals // a constant table
var leads = map[Class]string{
	ClassTransient:       "Omni failed to answer",
	ClassRefused:         "Omni refuses this",
	ClassConflict:        "changed in Omni meanwhile",
	ClassGone:            "not found in Omni",
	ClassDenied:          "the service account's role does not allow this (Operator is needed)",
	ClassUnauthenticated: "Omni does not accept this service account key (revoked, or made for another Omni)",
	ClassKeyExpired:      "the service account key has expired",
	ClassUnreachable:     "Omni cannot be reached",
	ClassTLS:             "the TLS connection to Omni fails",
}

// expiredText is how the library, which signs each call, says that the key has ended.
var expiredText = regexp.MustCompile(`(?:failed to sign message: |gopenpgp: |openpgp: )(?:[^"]*: )?no valid signing keys`)

var grpcWrapping = regexp.MustCompile(`rpc error: code = [A-Za-z]+ desc = `)
