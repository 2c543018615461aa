package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// schemaNode is the part of a schema that is read here.
type schemaNode struct {
	Description string                 `json:"description"`
	Properties  map[string]*schemaNode `json:"properties"`
}

// section is a table of values: those below a value at the top, or those at the top that have nothing below.
type section struct {
	Title, Text string
	Rows        []row
}

// row is a value, or what several values have in common.
type row struct{ Name, Default, Text string }

// describe makes the tables, in the order of values.yaml. It fails if a value is explained nowhere.
func describe(document *yaml.Node, schema *schemaNode) ([]section, error) {
	if document.Kind != yaml.DocumentNode || document.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("values.yaml is no mapping")
	}

	var sections []section

	general := section{Title: "General"}
	values := document.Content[0].Content

	for i := 0; i < len(values); i += 2 {
		name, value, about := values[i], values[i+1], schema.Properties[values[i].Value]

		if !nested(about) {
			found, err := rowOf(name.Value, name, value, about)
			if err != nil {
				return nil, err
			}

			general.Rows = append(general.Rows, found)

			continue
		}

		rows, err := rowsOf(name.Value+".", value, about)
		if err != nil {
			return nil, err
		}

		sections = append(sections, section{Title: "`" + name.Value + "`", Text: explained(name, about), Rows: rows})
	}

	return append([]section{general}, sections...), nil
}

// nested reports whether a value has others below it that are explained one by one.
func nested(about *schemaNode) bool { return about != nil && about.Properties != nil }

// rowsOf are the rows of the values below one, whose name with a dot is the prefix.
func rowsOf(prefix string, values *yaml.Node, schema *schemaNode) ([]row, error) {
	var rows []row

	for i := 0; i < len(values.Content); i += 2 {
		name, value, about := values.Content[i], values.Content[i+1], schema.Properties[values.Content[i].Value]
		path := prefix + name.Value

		if !nested(about) {
			found, err := rowOf(path, name, value, about)
			if err != nil {
				return nil, err
			}

			rows = append(rows, found)

			continue
		}

		if text := comment(name); text != "" {
			rows = append(rows, row{Name: path, Text: text})
		}

		below, err := rowsOf(path+".", value, about)
		if err != nil {
			return nil, err
		}

		rows = append(rows, below...)
	}

	return rows, nil
}

// rowOf is the row of one value.
func rowOf(path string, name, value *yaml.Node, about *schemaNode) (row, error) {
	text := explained(name, about)
	if text == "" {
		return row{}, fmt.Errorf("%s is explained neither in values.yaml nor in values.schema.json", path)
	}

	var decoded any
	if err := value.Decode(&decoded); err != nil {
		return row{}, fmt.Errorf("read the default of %s: %w", path, err)
	}

	shown, err := json.Marshal(decoded)
	if err != nil {
		return row{}, fmt.Errorf("show the default of %s: %w", path, err)
	}

	return row{Name: path, Default: cell(string(shown)), Text: text}, nil
}

// explained is what the comment says, or the schema if there is none.
func explained(name *yaml.Node, about *schemaNode) string {
	if text := comment(name); text != "" || about == nil {
		return text
	}

	return cell(about.Description)
}

// comment is the comment above a value, as one line.
func comment(name *yaml.Node) string {
	var words []string

	for line := range strings.SplitSeq(name.HeadComment, "\n") {
		words = append(words, strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "#"))...)
	}

	return cell(strings.Join(words, " "))
}

// cell is a text that may stand in a table.
func cell(text string) string {
	// What stands in angle brackets would be taken for HTML.
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text)
}
