package template

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// errNotText is what a value that is not UTF-8 gets; YAML has no way to carry it as text.
var errNotText = errors.New("the text is not valid UTF-8")

// literal is text that a reader of the template must get back byte for byte.
type literal string

// MarshalYAML writes a block of lines where that is exact, and a quoted string with escapes where it is not.
func (l literal) MarshalYAML() (any, error) {
	text := string(l)
	if !utf8.ValidString(text) {
		return nil, errNotText
	}

	style := yaml.DoubleQuotedStyle
	if fitsBlock(text) {
		style = yaml.LiteralStyle
	}

	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: style, Value: text}, nil
}

// fitsBlock reports whether every YAML reader gets the text back from a literal block. Leading white space would
// need an indentation indicator; carriage returns and Unicode's line separators are line breaks to some readers
// and not to others; invisible characters are not allowed in a block.
func fitsBlock(text string) bool {
	if strings.TrimSpace(text) == "" || strings.ContainsRune(" \t\n", rune(text[0])) || strings.HasSuffix(text, "\n\n") {
		return false
	}

	for _, r := range text {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			return false
		}
	}

	for line := range strings.Lines(text) {
		content := strings.TrimSuffix(line, "\n")
		if strings.HasSuffix(content, " ") || strings.HasSuffix(content, "\t") {
			return false
		}
	}

	return true
}
