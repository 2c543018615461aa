package validation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// wrongTypeIn returns the path of the first value that has a type which Talos does not expect there; the path of the patch if there is none.
// The library names only the line, so the patch is read again with each value on a line of its own.
func wrongTypeIn(text []byte, path *field.Path) *field.Path {
	var (
		lines bytes.Buffer
		patch any
	)

	if json.Indent(&lines, text, "", "") != nil || json.Unmarshal(text, &patch) != nil {
		return path
	}

	err := omnires.ValidateConfigPatch(lines.Bytes())
	if err == nil {
		return path
	}

	match := regexp.MustCompile(`line (\d+): cannot (?:unmarshal|construct) `).FindStringSubmatch(err.Error())
	if match == nil {
		return path
	}

	line, _ := strconv.Atoi(match[1])
	if line--; line <= 0 {
		return path
	}

	return cmp.Or(pathAtLine(patch, path, &line), path)
}

// pathAtLine returns the path of the value that begins the given number of lines below; nil if none does. A map or list that is not empty
// has a line for each member, in the order of the keys, and one for its end.
func pathAtLine(value any, at *field.Path, below *int) *field.Path {
	if *below == 0 {
		return at
	}

	var (
		found   *field.Path
		members int
	)

	look := func(member any, path *field.Path) bool {
		*below, members = *below-1, members+1
		found = pathAtLine(member, path, below)

		return found != nil
	}

	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if look(value[name], childOrKey(at, shortKey(name))) {
				return found
			}
		}
	case []any:
		for i, element := range value {
			if look(element, at.Index(i)) {
				return found
			}
		}
	}

	if members > 0 {
		*below--
	}

	return nil
}
