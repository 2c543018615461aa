// Package drift compares one object of a release with the workload cluster, and tells whether that object belongs to the
// release. pkg/helm uses it to find and correct drift (Client.Drift, Client.Correct), and after an uninstall to see that
// nothing is left. pkg/controllers/omnihelmrelease says which differences to ignore.
//
// It also bounds and reads YAML texts of objects: what a chart prints, its CRDs, and what Helm's records say.
package drift

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// Ignore leaves differences out.
type Ignore struct {
	// Group, Version, Kind, Namespace and Name select objects; empty matches everything.
	Group, Version, Kind, Namespace, Name string
	// Paths are JSON pointers (RFC 6901).
	Paths []string
}

// Object names an object of a release.
type Object struct {
	Group, Version, Kind, Namespace, Name string
}

// String is the object for people: Kind namespace/name.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}

	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// pathsFor are the pointers to leave out for an object.
func pathsFor(object Object, ignores []Ignore) []string {
	var paths []string

	matches := func(pattern, value string) bool { return pattern == "" || pattern == value }

	for _, ignore := range ignores {
		if matches(ignore.Group, object.Group) && matches(ignore.Version, object.Version) && matches(ignore.Kind, object.Kind) &&
			matches(ignore.Namespace, object.Namespace) && matches(ignore.Name, object.Name) {
			paths = append(paths, ignore.Paths...)
		}
	}

	return paths
}

// serverPaths change without anybody's doing.
func serverPaths() []string {
	return []string{
		"/metadata/managedFields", "/metadata/resourceVersion", "/metadata/generation", "/metadata/uid",
		"/metadata/creationTimestamp", "/metadata/selfLink", "/status",
	}
}

// diff lists the pointers at which two objects differ, without those at or
// below one of the ignored ones.
func diff(a, b any, ignored []string) []string {
	var paths []string

	walk("", a, b, ignored, &paths)
	slices.Sort(paths)

	return paths
}

func walk(at string, a, b any, ignored []string, paths *[]string) {
	if reflect.DeepEqual(a, b) || slices.Contains(ignored, at) {
		return
	}

	switch typed := a.(type) {
	case map[string]any:
		if second, ok := b.(map[string]any); ok {
			walkObjects(at, typed, second, ignored, paths)

			return
		}
	case []any:
		if second, ok := b.([]any); ok && len(typed) == len(second) {
			for i := range typed {
				walk(at+"/"+strconv.Itoa(i), typed[i], second[i], ignored, paths)
			}

			return
		}
	}

	*paths = append(*paths, cmp.Or(at, "/"))
}

func walkObjects(at string, a, b map[string]any, ignored []string, paths *[]string) {
	for name, value := range a {
		walk(at+"/"+escape(name), value, b[name], ignored, paths)
	}

	for name, value := range b {
		if _, both := a[name]; !both {
			walk(at+"/"+escape(name), nil, value, ignored, paths)
		}
	}
}

// escape writes a name as a part of a JSON pointer.
func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

func unescape(part string) string {
	return strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
}

// copyPath puts what stands at a pointer in from, or that nothing stands there,
// into to. A pointer that leads nowhere in to changes nothing.
func copyPath(from, to map[string]any, pointer string) {
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")

	var source, target any = from, to

	for _, part := range parts[:len(parts)-1] {
		source, target = member(source, part), member(target, part)
	}

	last := parts[len(parts)-1]
	value := member(source, last)

	switch parent := target.(type) {
	case map[string]any:
		if value == nil {
			delete(parent, unescape(last))
		} else {
			parent[unescape(last)] = runtime.DeepCopyJSONValue(value)
		}
	case []any:
		if i, err := strconv.Atoi(last); err == nil && i >= 0 && i < len(parent) && value != nil {
			parent[i] = runtime.DeepCopyJSONValue(value)
		}
	}
}

// member is a part of an object or a list; nil if there is none.
func member(value any, part string) any {
	switch typed := value.(type) {
	case map[string]any:
		return typed[unescape(part)]
	case []any:
		if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(typed) {
			return typed[i]
		}
	}

	return nil
}

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
