// Package utc has the form in which times are told and stored: in UTC, in whole seconds. When something begins or ends that people
// plan for is told with its weekday and its zone, which may be another one.
package utc

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Text returns a time for messages.
func Text(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Shown returns a time that people plan for, in its own zone.
func Shown(t time.Time) string { return t.Format("Mon 2006-01-02 15:04 MST") }

// NameLayout is the form of a time, in UTC, in the names of files and directories: they sort by time.
const NameLayout = "20060102T150405Z"

// Stored returns a time as the API keeps it.
func Stored(t time.Time) metav1.Time { return metav1.Time{Time: t.UTC().Truncate(time.Second)} }
