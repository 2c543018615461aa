package words

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Time returns a time for messages.
func Time(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// TimeWithZone returns a time that people plan for, in its own zone.
func TimeWithZone(t time.Time) string { return t.Format("Mon 2006-01-02 15:04 MST") }

// TimeInNames is the form of a time, in UTC, in the names of files and directories: they sort by time.
const TimeInNames = "20060102T150405Z"

// StoredTime returns a time as the API keeps it.
func StoredTime(t time.Time) metav1.Time { return metav1.Time{Time: t.UTC().Truncate(time.Second)} }
