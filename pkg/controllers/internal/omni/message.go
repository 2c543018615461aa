package omni

import (
	"regexp"
	"strings"
	"unicode"
)

// MaxMessageBytes is the longest text that Message returns, in bytes. A
// condition message may have 32 KiB, but nobody reads more than a few lines.
const MaxMessageBytes = 1024

// Message gives a text for conditions, events and logs: what kind of failure
// it is in plain words, then what was said, without the gRPC wrapping, on one
// line, without long opaque tokens, and never longer than MaxMessageBytes.
// Nil gives an empty text.
func Message(err error) string {
	if err == nil {
		return ""
	}

	said := Sanitize(err.Error())

	// An error of Apply has the lead behind the resource's name already.
	if lead := leads[Classify(err)]; lead != "" && !strings.Contains(said, lead) {
		said = lead + ": " + said
	}

	return bounded(said, MaxMessageBytes)
}

// Sanitize makes one bounded line out of any text that came from outside:
// gRPC wrapping off, control characters and line breaks replaced by spaces,
// and everything that looks like a key, a token or a PGP block replaced.
func Sanitize(text string) string {
	text = pgpBlock.ReplaceAllString(text, "[removed]")
	text = opaqueToken.ReplaceAllString(text, "[removed]")
	text = grpcWrapping.ReplaceAllString(text, "")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}

		return r
	}, text)

	return bounded(strings.Join(strings.Fields(text), " "), MaxMessageBytes)
}

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

// The patterns only ever remove text, so a false match costs readability, not safety.
//
//nolint:gochecknoglobals // compiled constants
var (
	grpcWrapping = regexp.MustCompile(`rpc error: code = [A-Za-z]+ desc = `)
	pgpBlock     = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]+-----.*?(-----END [A-Z ]+-----|\z)`)
	opaqueToken  = regexp.MustCompile(`[A-Za-z0-9+/_=.-]{97,}`)
)

// bounded cuts at a rune boundary and shows that it did.
func bounded(text string, limit int) string {
	const mark = "..."

	if len(text) <= limit {
		return text
	}

	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}
