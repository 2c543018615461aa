package logging

import (
	"fmt"

	"k8s.io/klog/v2"
)

// OmitBodies makes the process's log leave out the bodies of requests and answers. From --v=8 on the client
// library logs what it sends to the hub and gets from it: token reviews with the tokens of callers who came past
// kube-apiserver, and admission reviews with whole objects. Call it once, before anything logs; the verbosity may be
// changed at any time, by /debug/flags/v, too.
func OmitBodies() { klog.SetLogFilter(withoutBodies{}) }

// withoutBodies says of bodies only how long they are.
type withoutBodies struct{}

var _ klog.LogFilter = withoutBodies{}

// Filter implements klog.LogFilter. Bodies are logged in the structured way only.
func (withoutBodies) Filter(args []any) []any { return args }

// FilterF implements klog.LogFilter.
func (withoutBodies) FilterF(format string, args []any) (string, []any) { return format, args }

// FilterS implements klog.LogFilter: keys and values take turns.
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
