package env

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// What is built, and the definitions that test/deploy installs, are of one version of cert-manager.
func TestCertManagerVersion(t *testing.T) {
	root, err := RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}

	line := regexp.MustCompile(`(?m)^\tgithub\.com/cert-manager/cert-manager (v\S+)$`)

	for _, module := range []string{"certmanager", "crds"} {
		content, err := os.ReadFile(filepath.Join(root, "hack", module, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}

		if got := line.FindStringSubmatch(string(content)); got == nil || got[1] != "v1.21.2" {
			t.Errorf("hack/%s names %q, want v1.21.2, of which high-availability.md speaks", module, got)
		}
	}
}

func TestCertManagerAccounts(t *testing.T) {
	for program, want := range map[CertManagerComponent]string{CertManagerController: "cert-manager", CertManagerCAInjector: "cert-manager-cainjector"} {
		if got := program.account(); got != want {
			t.Errorf("%s runs as %q, want %q", program, got, want)
		}
	}
}
