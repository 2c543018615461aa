package env

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestEnsureBuilt builds a tiny module: once, again only if it changes, and never so that a
// failed build looks finished.
func TestEnsureBuilt(t *testing.T) {
	module := filepath.Join(t.TempDir(), "module")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("GOCACHE", goCache(t)) // it would move with the line above

	write(t, filepath.Join(module, "go.mod"), "module example.com/tiny\n\ngo 1.26\n")
	write(t, filepath.Join(module, "go.sum"), "")
	write(t, filepath.Join(module, "tiny", "main.go"), "package main\n\nfunc main() { println(\"one\") }\n")

	b := build{
		name: "tiny", what: "a tiny program", module: module,
		packages: []string{"./tiny"}, rename: map[string]string{"tiny": "small"},
		sources: []string{"tiny/main.go"}, programs: []string{"small"},
	}

	first, progress := mustBuild(t, b)
	// On a busy machine there are lines between these two, which tell that it goes on.
	if !strings.HasPrefix(progress, "building a tiny program\n") || !strings.Contains(progress, "\nbuilt in ") {
		t.Errorf("progress of the first build: %q", progress)
	}

	if out := run(t, filepath.Join(first, "small")); out != "one\n" {
		t.Errorf("the program prints %q", out)
	}

	second, progress := mustBuild(t, b)
	if second != first || progress != "" {
		t.Errorf("the second call built again: %s, %q", second, progress)
	}

	write(t, filepath.Join(module, "tiny", "main.go"), "package main\n\nfunc main() { broken }\n")

	for range 2 { // the second try must not take the first one's remains for a build
		_, err := ensureBuilt(t.Context(), t.Output(), b)
		if err == nil || !strings.Contains(err.Error(), "undefined: broken") {
			t.Errorf("broken source: %v", err)
		}
	}

	write(t, filepath.Join(module, "tiny", "main.go"), "package main\n\nfunc main() { println(\"two\") }\n")

	third, _ := mustBuild(t, b)
	if third == first {
		t.Error("a changed source has the directory of the old one")
	}

	if out := run(t, filepath.Join(third, "small")); out != "two\n" {
		t.Errorf("the changed program prints %q", out)
	}
}

func TestRepositoryRoot(t *testing.T) {
	root, err := RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}

	if _, err := os.Stat(filepath.Join(root, "test", "env", "doc.go")); err != nil {
		t.Error(err)
	}

	t.Chdir(t.TempDir())

	if root, err := RepositoryRoot(); err == nil {
		t.Errorf("found a repository %s outside of it", root)
	}
}

func TestKubernetesLDFlags(t *testing.T) {
	const want = "-s -w -X k8s.io/component-base/version.gitVersion=v1.37.2 -X k8s.io/component-base/version.gitMajor=1" +
		" -X k8s.io/component-base/version.gitMinor=37 -X k8s.io/component-base/version.gitTreeState=clean"
	if got := kubernetesLDFlags(); got != want {
		t.Errorf("got %q", got)
	}
}

func mustBuild(t *testing.T, b build) (dir, progress string) {
	t.Helper()

	var buffer bytes.Buffer

	dir, err := ensureBuilt(t.Context(), &buffer, b)
	if err != nil {
		t.Fatal(err)
	}

	return dir, buffer.String()
}

func goCache(t *testing.T) string {
	t.Helper()

	return strings.TrimSpace(run(t, "go", "env", "GOCACHE"))
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()

	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}

	return string(out)
}

func write(t *testing.T, path, content string) {
	t.Helper()

	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}

	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
