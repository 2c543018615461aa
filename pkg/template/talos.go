package template

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"go.yaml.in/yaml/v3"
)

// How the apiVersion and the kind of a Talos document look. Other texts are mistakes, or values that nobody may repeat.
var (
	talosVersion = regexp.MustCompile(`^([a-z0-9.-]{1,63}/)?v[0-9][a-z0-9]{0,15}$`)
	talosKind    = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)
)

// IsUnknownKind reports whether apiVersion and kind could be those of a Talos document that the Talos library of this
// build does not have. Every minor release of Talos brings new kinds, and Omni may know them: Omni decides.
func IsUnknownKind(apiVersion, kind string) bool {
	if !talosVersion.MatchString(apiVersion) || !talosKind.MatchString(kind) {
		return false
	}

	// The library's registry of kinds is internal: only its decoder can be asked.
	_, err := configloader.NewFromBytes([]byte(`apiVersion: "` + apiVersion + "\"\nkind: \"" + kind + "\"\n"))

	return err != nil && strings.Contains(err.Error(), "not registered")
}

// nothingToCheck is a patch that the library accepts and that says nothing.
const nothingToCheck = "machine: {}\n"

// CheckablePatch returns the documents of a Talos configuration patch that the Talos library can check: those of unknown
// kinds are left out. It is false, with the patch itself, if there are none, or if the patch is not YAML.
func CheckablePatch(patch []byte) (checkable []byte, less bool) {
	checkable, less = Rewrite(patch, func(document *yaml.Node) (keep, changed bool) {
		apiVersion, kind := textOf(document, "apiVersion"), textOf(document, "kind")
		unknown := IsUnknownKind(apiVersion, kind)

		return !unknown, unknown
	})
	if len(checkable) == 0 && less {
		return []byte(nothingToCheck), true
	}

	return checkable, less
}

// Checkable returns a cluster template in which each patch is what CheckablePatch makes of it. It is for checks only: what goes
// to Omni is the template itself. It is false, with the template itself, if no patch has a document of an unknown kind.
func Checkable(template []byte) (checkable []byte, less bool) {
	return Rewrite(template, func(document *yaml.Node) (keep, changed bool) {
		patches := Member(document, "patches")
		if patches == nil {
			return true, false
		}

		for _, patch := range patches.Content {
			inline := Member(patch, "inline")
			if inline == nil || inline.Kind != yaml.ScalarNode {
				continue
			}

			if text, less := CheckablePatch([]byte(inline.Value)); less {
				inline.SetString(string(text))

				changed = true
			}
		}

		return true, changed
	})
}

// Rewrite writes the YAML documents of a text that edit keeps. If edit changes none, or the text is not YAML, it returns the
// text itself and false.
func Rewrite(text []byte, edit func(document *yaml.Node) (keep, changed bool)) ([]byte, bool) {
	var (
		written       bytes.Buffer
		kept, changes bool
	)

	decoder, encoder := yaml.NewDecoder(bytes.NewReader(text)), yaml.NewEncoder(&written)

	for {
		var document yaml.Node

		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			return text, false
		}

		keep, changed := edit(document.Content[0])
		changes = changes || changed

		if !keep {
			continue
		}

		if kept = true; encoder.Encode(&document) != nil {
			return text, false
		}
	}

	// An encoder that wrote nothing cannot be closed.
	if !changes || kept && encoder.Close() != nil {
		return text, false
	}

	return written.Bytes(), true
}

// Member returns the value of a key; nil if the node is no mapping, or does not have it.
func Member(mapping *yaml.Node, key string) *yaml.Node {
	if mapping.Kind != yaml.MappingNode {
		return nil
	}

	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}

	return nil
}

// textOf returns the text of a key's value; "" if it has none.
func textOf(mapping *yaml.Node, key string) string {
	if member := Member(mapping, key); member != nil && member.Kind == yaml.ScalarNode {
		return member.Value
	}

	return ""
}
