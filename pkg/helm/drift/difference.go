package drift

import (
	"slices"
	"strings"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// maxShown is how much of a name or a pointer is shown, in bytes.
const maxShown = 1024

// Difference is one object that is not as the release says.
type Difference struct {
	// Object that differs.
	Object Object
	// Missing tells that it does not exist.
	Missing bool
	// Owner is the other release, as namespace/name, that has the object by now; empty if none has. Such an object is left alone.
	Owner string
	// Paths are JSON pointers to what differs, sorted; never what stands there.
	Paths []string
}

// String is the difference for people.
func (d Difference) String() string {
	if d.Missing {
		return d.Object.String() + " is missing"
	}

	if d.Owner != "" {
		return d.Object.String() + " belongs to Helm release " + d.Owner + " and is left alone (take it out of one of the two charts)"
	}

	return d.Object.String() + " differs at " + strings.Join(d.Paths, ", ")
}

// Without is the difference as it may be shown: the chart and the cluster choose its names and the keys in its pointers.
// Nothing is left that remove takes out of a text, nor what is not printable, nor more than 1 KiB of one name or pointer.
func (d Difference) Without(remove func(text string) string) Difference {
	shown := func(text string) string { return remove(redact.Printable(redact.Bounded(text, maxShown))) }

	d.Object.Kind, d.Object.Namespace, d.Object.Name = shown(d.Object.Kind), shown(d.Object.Namespace), shown(d.Object.Name)
	d.Owner, d.Paths = shown(d.Owner), slices.Clone(d.Paths)

	for i, pointer := range d.Paths {
		pointer = redact.Printable(redact.Bounded(pointer, maxShown))

		// Escapes could hide a part of what is to be removed.
		if plain := unescape(pointer); remove(plain) != plain {
			pointer = remove(plain)
		}

		d.Paths[i] = pointer
	}

	return d
}
