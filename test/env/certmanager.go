package env

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
)

// CertManagerComponent is one of cert-manager's programs, by its name.
type CertManagerComponent string

// The programs of cert-manager that can be started here. There is no webhook: nothing refuses what it would.
const (
	// CertManagerController makes Secrets of Certificates.
	CertManagerController CertManagerComponent = "controller"
	// CertManagerCAInjector writes authorities into APIServices.
	CertManagerCAInjector CertManagerComponent = "cainjector"
)

// CertManagerNamespace is where cert-manager's accounts are.
const CertManagerNamespace = "cert-manager"

// account is the service account that cert-manager's chart makes for the program, in a release of the namespace's name.
func (p CertManagerComponent) account() string {
	if p == CertManagerController {
		return CertManagerNamespace
	}

	return CertManagerNamespace + "-" + string(p)
}

// BuiltCertManager is a built cert-manager.
type BuiltCertManager struct {
	// Source is the root of its module, with deploy/crds and deploy/charts. It is read-only.
	Source string

	binary string
}

// EnsureCertManager returns cert-manager's programs. If the user's cache directory does not have them, they are built first
// from hack/certmanager, which takes about three minutes on two idle cores; progress gets a line now and then. The
// module itself has to be in Go's module cache or on the module proxy.
func EnsureCertManager(ctx context.Context, progress io.Writer) (BuiltCertManager, error) {
	root, err := RepositoryRoot()
	if err != nil {
		return BuiltCertManager{}, err
	}

	module := filepath.Join(root, "hack", "certmanager")

	dir, err := ensureBuilt(ctx, progress, build{
		name:     "certmanager",
		what:     "cert-manager (about 3 minutes, once)",
		module:   module,
		ldflags:  "-s -w",
		packages: []string{"."},
		sources:  []string{"main.go", "controller.go", "cainjector.go"},
		programs: []string{"certmanager"},
	})
	if err != nil {
		return BuiltCertManager{}, err
	}

	source, err := moduleDirectory(ctx, module, "github.com/cert-manager/cert-manager")
	if err != nil {
		return BuiltCertManager{}, err
	}

	return BuiltCertManager{Source: source, binary: filepath.Join(dir, "certmanager")}, nil
}

// CertManagerProcess is a running program of cert-manager.
type CertManagerProcess struct{ *component }

// StartCertManager starts one of cert-manager's programs with the rights of its service account, which cert-manager's own
// chart has to have given it, and with more flags. It returns at once: what the program does shows in objects. Hub.Stop
// stops it.
func (h *Hub) StartCertManager(ctx context.Context, built BuiltCertManager, program CertManagerComponent, args ...string) (*CertManagerProcess, error) {
	kubeconfig, err := h.KubeconfigFor("system:serviceaccount:"+CertManagerNamespace+":"+program.account(),
		"system:serviceaccounts", "system:serviceaccounts:"+CertManagerNamespace)
	if err != nil {
		return nil, fmt.Errorf("start cert-manager's %s: %w", program, err)
	}

	c := &CertManagerProcess{&component{
		hub:   h,
		ready: func(context.Context) error { return nil },
		spec: processSpec{
			name:    "cert-manager-" + string(program),
			binary:  built.binary,
			foreign: true,
			args:    append([]string{"--part=" + string(program), "--kubeconfig=" + kubeconfig}, args...),
		},
	}}

	return c, c.launch(ctx)
}
