package validation

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxWarning is the largest length of a warning in bytes; clients are told to keep lines short
// and Kubernetes drops warnings when all of them together grow too long.
const maxWarning = 120

// warning writes "path: message". Where that is too long, for example because a map key is part
// of the path, the end of the path gives way. What a cut leaves of a character goes: a warning that
// is not UTF-8 is never sent.
func warning(path *field.Path, message string) string {
	const gap = "..."

	at := path.String()
	if room := maxWarning - len(message) - len(": "); len(at) > room {
		at = at[:max(room-len(gap), 0)] + gap
	}

	text := at + ": " + message

	return strings.ToValidUTF8(text[:min(len(text), maxWarning)], "")
}
