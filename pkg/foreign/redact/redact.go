// Package redact makes text that came from outside fit for conditions, events
// and logs: one bounded line, without anything that looks like a secret (Line), and
// without anything of the secrets that are known (Secrets).
//
// Only foreign text goes through it. Our own wording, with names of objects and
// fields, is put around the result, or a Secret that holds the word "cluster"
// would make our own messages unreadable.
package redact

import (
	"regexp"
	"strings"
)

const (
	// MaxBytes is the longest text that Line returns, in bytes. A condition message
	// may have 32 KiB, but nobody reads more than a few lines.
	MaxBytes = 1024
	// maxText is how much of a text Line looks at, in bytes.
	maxText = 16 << 10
	// removed stands where something was taken out.
	removed = "[removed]"
)

// The patterns only ever remove text, so a false match costs readability, not safety.
var (
	pgpBlock    = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]+-----.*?(-----END [A-Z ]+-----|\z)`)
	opaqueToken = regexp.MustCompile(`[A-Za-z0-9+/_=.-]{97,}`)
	// Our own end of a broken connection has another port each time: the same
	// failure would be a new message.
	localAddress = regexp.MustCompile(`\b(read|write) (tcp|udp) \S+->`)
	// A name leads to several addresses, and which of them is dialled first changes.
	dialledAddress = regexp.MustCompile(`\bdial (tcp|udp) \S+: `)
	// An expired certificate is expired at another time each time.
	currentTime = regexp.MustCompile(`\bcurrent time \S+ is\b`)
)

// Line makes one bounded line out of any text: line breaks and what is not
// Printable become spaces, PEM or PGP blocks and long opaque words (keys, tokens) are
// replaced, and what differs between two equal failures goes.
func Line(text string) string { return (*Secrets)(nil).Line(text) }

// clean is Line without the secrets that are known, and without its final length.
func clean(text string) string {
	text = pgpBlock.ReplaceAllString(text, removed)
	text = opaqueToken.ReplaceAllString(text, removed)
	text = localAddress.ReplaceAllString(text, "$1 $2 ")
	text = dialledAddress.ReplaceAllString(text, "dial $1: ")
	text = currentTime.ReplaceAllString(text, "current time is")

	return strings.Join(strings.Fields(Printable(text)), " ")
}

// Bounded cuts a text to so many bytes, at a rune boundary, and shows that it did.
func Bounded(text string, limit int) string {
	const mark = "..."

	if len(text) <= limit {
		return text
	}

	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}
