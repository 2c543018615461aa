package env

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The nested modules name exactly the versions that documentation and benchmarks speak of.
func TestFluxVersions(t *testing.T) {
	root, err := RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}

	for component, want := range map[FluxComponent]string{
		FluxSourceController: "v1.9.3", FluxKustomizeController: "v1.9.3", FluxHelmController: "v1.6.3",
	} {
		content, err := os.ReadFile(filepath.Join(root, "hack", "flux", string(component), "go.mod"))
		if err != nil {
			t.Fatal(err)
		}

		for _, line := range []string{
			"tool github.com/fluxcd/" + string(component) + "\n",
			"require github.com/fluxcd/" + string(component) + " " + want + " ",
		} {
			if !strings.Contains(string(content), "\n"+line) {
				t.Errorf("%s: its module has no line %q", component, line)
			}
		}
	}
}

func TestModuleDirectory(t *testing.T) {
	root, err := RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}

	// A small module that every build of the operator needs anyway.
	dir, err := moduleDirectory(t.Context(), root, "github.com/google/go-cmp")
	if err != nil {
		t.Fatal(err)
	}

	if _, err := os.Stat(filepath.Join(dir, "cmp", "compare.go")); err != nil {
		t.Error(err)
	}

	if dir, err := moduleDirectory(t.Context(), root, "example.com/absent"); err == nil || !strings.Contains(err.Error(), "example.com/absent") {
		t.Errorf("an unknown module is in %q: %v", dir, err)
	}
}

func TestFluxControllerFlags(t *testing.T) {
	dir := t.TempDir()

	hub := &Hub{Dir: dir, KubeconfigPath: "/hub/admin"}
	defer hub.Stop()

	source, err := hub.newFluxProcess(FluxSourceController, "/bin/source-controller", []string{"--concurrent=1"})
	if err != nil {
		t.Fatal(err)
	}

	flags := strings.Join(source.spec.args, " ")
	for _, want := range []string{"--metrics-addr=127.0.0.1:", "--health-addr=127.0.0.1:", "--storage-addr=127.0.0.1:", "--storage-path=" + dir + "/flux-artifacts", "--enable-leader-election=false", " --concurrent=1"} {
		if !strings.Contains(flags, want) {
			t.Errorf("no %q in %s", want, flags)
		}
	}

	if got, want := strings.Join(source.spec.env, " "), "KUBECONFIG=/hub/admin RUNTIME_NAMESPACE=flux-system"; got != want {
		t.Errorf("environment %q, want %q", got, want)
	}

	kustomize, err := hub.newFluxProcess(FluxKustomizeController, "/bin/kustomize-controller", nil)
	if err != nil {
		t.Fatal(err)
	}

	if flags := strings.Join(kustomize.spec.args, " "); strings.Contains(flags, "storage") {
		t.Errorf("kustomize-controller is started with %s", flags)
	}
}
