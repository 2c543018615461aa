package apiserver

import (
	"errors"
	"fmt"
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
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

// defaultAuditPolicy logs who did what to which object, and never a body: specs may hold values that their owners do
// not want in a log.
const defaultAuditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    nonResourceURLs: [/healthz*, /livez*, /readyz*, /metrics, /openapi/*]
  - level: Metadata
`

// ApplyAudit applies the audit options. If the user gives no policy, it applies a default one, where the library
// would log nothing at all.
func ApplyAudit(options *genericoptions.AuditOptions, config *genericapiserver.Config) error {
	if options.PolicyFile != "" {
		return options.ApplyTo(config)
	}

	// The library reads policies from files only, and only once.
	file, err := os.CreateTemp("", "omni-audit-policy-*.yaml")
	if err != nil {
		return fmt.Errorf("write the default audit policy: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }()

	_, err = file.WriteString(defaultAuditPolicy)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write the default audit policy: %w", err)
	}

	withPolicy := *options
	withPolicy.PolicyFile = file.Name()

	return withPolicy.ApplyTo(config)
}
