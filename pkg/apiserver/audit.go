package apiserver

import (
	"errors"
	"fmt"
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
)

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
