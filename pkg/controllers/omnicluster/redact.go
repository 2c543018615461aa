package omnicluster

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Limits of what counts as recognisable, in bytes.
const (
	// secretWord is the shortest word of a Secret that is removed from a text.
	secretWord = 4
	// secretWindow is the length of a piece of a Secret that must not remain.
	secretWindow = 8
)

// redactor keeps the content of Secrets out of texts. Errors of Omni's own
// rules quote what they refuse, in whole or in part.
type redactor struct {
	names  []string // of the Secrets, for people
	values []string
}

// add notes a value that was read from a Secret.
func (r *redactor) add(secret, value string) {
	if !slices.Contains(r.names, secret) {
		r.names = append(r.names, secret)
	}

	r.values = append(r.values, value)
}

// clean removes every word of the values from a text. If a piece of a value
// still shows then, because it was cut or escaped, the whole text is withheld.
func (r *redactor) clean(text string) string {
	if r == nil || len(r.values) == 0 {
		return text
	}

	for _, word := range r.words() {
		text = strings.ReplaceAll(text, word, "[removed]")
	}

	for _, value := range r.values {
		if sharesWindow(text, value) {
			return fmt.Sprintf("the details are not shown, because they quote the content of Secret %s", strings.Join(r.names, ", "))
		}
	}

	return text
}

// words splits the values at everything that is not part of a word, longest first.
func (r *redactor) words() []string {
	var words []string

	for _, value := range r.values {
		words = append(words, strings.FieldsFunc(value, func(c rune) bool {
			return unicode.IsSpace(c) || strings.ContainsRune(`"'{}[]:,`, c)
		})...)
	}

	words = slices.DeleteFunc(words, func(word string) bool { return len(word) < secretWord })
	slices.SortFunc(words, func(a, b string) int { return len(b) - len(a) })

	return slices.Compact(words)
}

// sharesWindow tells whether any piece of a value stands in a text.
func sharesWindow(text, value string) bool {
	for i := 0; i+secretWindow <= len(value); i++ {
		piece := value[i : i+secretWindow]
		if strings.TrimSpace(piece) == piece && strings.Contains(text, piece) {
			return true
		}
	}

	return false
}
