// Package logging decides what omni-apiserver's own log may hold: everything that the libraries log, but no content.
//
// It is a package of its own because the filter is one of the whole process, to be set before anything else runs.
package logging

import (
	"fmt"

	"k8s.io/klog/v2"
)

// OmitBodies makes the process's log leave out the bodies of requests and answers. From --v=8 on, the client library
// logs what it sends to the hub and receives from it: token reviews with the tokens of callers who did not come
// through kube-apiserver, and admission reviews with whole objects. Call OmitBodies once, before anything logs. The
// verbosity may change at any time, also through /debug/flags/v.
func OmitBodies() { klog.SetLogFilter(withoutBodies{}) }

// withoutBodies replaces bodies by their length.
type withoutBodies struct{}

var _ klog.LogFilter = withoutBodies{}

// Filter implements klog.LogFilter. It changes nothing: the library logs bodies only as structured entries (FilterS).
func (withoutBodies) Filter(args []any) []any { return args }

// FilterF implements klog.LogFilter. See Filter.
func (withoutBodies) FilterF(format string, args []any) (string, []any) { return format, args }

// FilterS implements klog.LogFilter. Its arguments are keys and values in alternation.
func (withoutBodies) FilterS(message string, keysAndValues []any) (string, []any) {
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		body, text := keysAndValues[i+1].(string)
		if keysAndValues[i] != "body" || !text {
			continue
		}

		shown := make([]any, len(keysAndValues))
		copy(shown, keysAndValues)
		shown[i+1] = fmt.Sprintf("<%d characters are not logged>", len(body))

		return message, shown
	}

	return message, keysAndValues
}
