package validation

import "k8s.io/apimachinery/pkg/util/validation/field"

// maxWarning is the largest length of a warning in bytes; clients are told to keep lines short
// and Kubernetes drops warnings when all of them together grow too long.
const maxWarning = 120

// warning writes "path: message". Where that is too long, for example because a map key is part
// of the path, the end of the path gives way.
func warning(path *field.Path, message string) string {
	const gap = "..."

	at := path.String()
	if room := maxWarning - len(message) - len(": "); len(at) > room {
		at = at[:max(room-len(gap), 0)] + gap
	}

	return (at + ": " + message)[:min(len(at)+len(": ")+len(message), maxWarning)]
}
