// Package words has the form in which messages tell numbers of things, the first of many, and times. Times are told and stored in
// UTC, in whole seconds. When something begins or ends that people plan for is told with its weekday and its zone, which may be
// another one.
package words

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// Time returns a time for messages.
func Time(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// TimeWithZone returns a time that people plan for, in its own zone.
func TimeWithZone(t time.Time) string { return t.Format("Mon 2006-01-02 15:04 MST") }

// TimeInNames is the form of a time, in UTC, in the names of files and directories: they sort by time.
const TimeInNames = "20060102T150405Z"

// StoredTime returns a time as the API keeps it.
func StoredTime(t time.Time) metav1.Time { return metav1.Time{Time: t.UTC().Truncate(time.Second)} }
