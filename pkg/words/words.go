// Package words has the form in which messages tell numbers of things, the first of many, and times. Times are told and stored in
// UTC, in whole seconds. When something begins or ends that people plan for is told with its weekday and its zone, which may be
// another one.
package words

import (
	"fmt"
	"strings"
)

// Plural returns a number of things, such as "1 line" and "2 lines".
func Plural(count int, noun string) string {
	if count == 1 {
		return "1 " + noun
	}

	return fmt.Sprintf("%d %ss", count, noun)
}

// Few returns the first texts, and how many more there are: "a, b, and 3 more" with the separator ", ".
func Few(texts []string, most int, separator string) string {
	return AndMore(strings.Join(texts[:min(most, len(texts))], separator), len(texts)-most, separator)
}

// AndMore adds to a text how many more things there are than it tells, if there are any.
func AndMore(text string, more int, separator string) string {
	if more <= 0 {
		return text
	}

	return fmt.Sprintf("%s%sand %d more", text, separator, more)
}
