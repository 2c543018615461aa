package lists

import (
	"bytes"
	"encoding/json"
	"slices"

	"sigs.k8s.io/yaml"
)

// layout is how a format places elements in their list.
type layout interface {
	// whole formats a single object, given as JSON.
	whole(object []byte) ([]byte, error)
	// around formats what comes before and after the elements, from the JSON of the list without elements.
	around(empty []byte) (before, after []byte, err error)
	// element formats one element, given as JSON.
	element(object []byte, first bool) ([]byte, error)
}

// prettyJSON has a line for each value.
type prettyJSON struct{}

func (prettyJSON) whole(object []byte) ([]byte, error) { return indented(object, "") }

func (prettyJSON) around(empty []byte) (before, after []byte, err error) {
	all, err := indented(empty, "")
	if err != nil {
		return nil, nil, err
	}

	before, found := bytes.CutSuffix(all, []byte("]\n}"))
	if !found {
		return nil, nil, errNoPlace
	}

	return before, []byte("\n  ]\n}"), nil
}

func (prettyJSON) element(object []byte, first bool) ([]byte, error) {
	const indent = "    "

	separator := ",\n" + indent
	if first {
		separator = "\n" + indent
	}

	laidOut, err := indented(object, indent)

	return slices.Concat([]byte(separator), laidOut), err
}

func indented(object []byte, prefix string) ([]byte, error) {
	if len(object) > maxForPeople {
		return object, nil
	}

	var out bytes.Buffer

	err := json.Indent(&out, object, prefix, "  ")

	return out.Bytes(), err
}

// blockYAML has a line for each value, too.
type blockYAML struct{}

func (blockYAML) whole(object []byte) ([]byte, error) {
	if len(object) > maxForPeople {
		return append(object, '\n'), nil
	}

	return yaml.JSONToYAML(object)
}

func (blockYAML) around(empty []byte) (before, after []byte, err error) {
	all, err := yaml.JSONToYAML(empty)
	if err != nil {
		return nil, nil, err
	}

	// The element starts on a line of its own: text that spans lines is indented.
	before, after, found := bytes.Cut(slices.Concat([]byte("\n"), all), []byte("\nitems: []\n"))
	if !found {
		return nil, nil, errNoPlace
	}

	return slices.Concat(bytes.TrimPrefix(before, []byte("\n")), []byte("\nitems:\n")), after, nil
}

func (b blockYAML) element(object []byte, _ bool) ([]byte, error) {
	laidOut, err := b.whole(object)
	if err != nil {
		return nil, err
	}

	var out bytes.Buffer

	for i, line := range bytes.SplitAfter(bytes.TrimSuffix(laidOut, []byte("\n")), []byte("\n")) {
		switch {
		case i == 0:
			out.WriteString("- ")
		case len(line) > 1: // an empty line belongs to a text and stays empty
			out.WriteString("  ")
		}

		out.Write(line)
	}

	out.WriteByte('\n')

	return out.Bytes(), nil
}
