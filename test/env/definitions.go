package env

import (
	"context"
	"fmt"
	"path/filepath"
)

// definitions of others are files in the sources of modules that hack/crds names with their versions.
var definitions = []struct {
	module string
	files  []string // below the module's root
}{
	{"github.com/cert-manager/cert-manager", []string{
		"deploy/crds/cert-manager.io_certificates.yaml",
		"deploy/crds/cert-manager.io_issuers.yaml",
	}},
	{"github.com/prometheus-operator/prometheus-operator", []string{
		"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
	}},
}

// InstallDefinitions installs the real definitions of the kinds of others that an installation of the operator uses:
// of cert-manager (Certificate, Issuer) and of the Prometheus operator (ServiceMonitor, PrometheusRule). It returns
// when the kinds are served; nobody acts upon their objects. The sources have to be in Go's module cache or on the
// module proxy.
func (h *Hub) InstallDefinitions(ctx context.Context) error {
	root, err := RepositoryRoot()
	if err != nil {
		return err
	}

	args := []string{"apply", "--server-side"}

	for _, source := range definitions {
		dir, err := moduleDirectory(ctx, filepath.Join(root, "hack", "crds"), source.module)
		if err != nil {
			return err
		}

		for _, file := range source.files {
			args = append(args, "-f", filepath.Join(dir, filepath.FromSlash(file)))
		}
	}

	// Server-side: the definitions are too large for kubectl's annotation.
	if _, _, err := h.Kubectl(ctx, args...); err != nil {
		return fmt.Errorf("install definitions: %w", err)
	}

	if _, _, err := h.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "customresourcedefinitions", "--all"); err != nil {
		return fmt.Errorf("install definitions: %w", err)
	}

	return nil
}
