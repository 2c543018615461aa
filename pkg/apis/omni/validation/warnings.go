package validation

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxWarning is the largest length of a warning in bytes: clients expect short lines, and Kubernetes drops warnings
// when all of them together become too long.
const maxWarning = 120

// maxWarned is how many things of one kind get a warning each; one more warning counts the others.
const maxWarned = 5

// warning formats "path: message". If that is too long, for example because the path has a map key, it cuts off the
// end of the path. It drops a character that the cut has split: a warning that is not UTF-8 is never sent.
func warning(path *field.Path, message string) string {
	const gap = "..."

	at := path.String()
	if room := maxWarning - len(message) - len(": "); len(at) > room {
		at = at[:max(room-len(gap), 0)] + gap
	}

	text := at + ": " + message

	return strings.ToValidUTF8(text[:min(len(text), maxWarning)], "")
}
