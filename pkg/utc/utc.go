// Package utc has the form in which times are told and stored: in UTC, in whole seconds.
package utc

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Text returns a time for messages.
func Text(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Stored returns a time as the API keeps it.
func Stored(t time.Time) metav1.Time { return metav1.Time{Time: t.UTC().Truncate(time.Second)} }
