package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestDescribe(t *testing.T) {
	r := fixture(t, nil)
	if r.image() != "registry.example.com/some-one/omni-cluster-operator" || r.chart() != "registry.example.com/some-one/charts/omni-cluster-operator" {
		t.Errorf("%s, %s", r.image(), r.chart())
	}

	for _, tc := range []struct{ name, chart, variable, want string }{
		{"no commit", "", "COMMIT", "COMMIT"},
		{"no registry", "", "REGISTRY", "REGISTRY"},
		{"no time", "", "SOURCE_DATE_EPOCH", "SOURCE_DATE_EPOCH"},
		{"two versions", "version: 0.1.0\nappVersion: v0.2.0", "", "they are one version"},
		{"no v", "version: 0.1.0\nappVersion: 0.1.0", "", "they are one version"},
		{"no version", "version: main\nappVersion: vmain", "", "they are one version"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := "../.."
			if tc.chart != "" {
				root = t.TempDir()
				write(t, filepath.Join(root, chartDir, "Chart.yaml"), tc.chart)
			}

			env := maps.Clone(environment)
			delete(env, tc.variable)

			if _, err := describe(root, func(name string) string { return env[name] }); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
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

// TestCheck: what is not ready is not released.
func TestCheck(t *testing.T) {
	ready := map[string]string{"CHANGELOG.md": "# Changelog\n\n## v0.1.0 - 2026-12-01\n\nAll.\n", ".go-version": strings.TrimPrefix(runtime.Version(), "go")}

	for _, tc := range []struct {
		name, tag string
		changes   map[string]string
		dirty     bool
		want      string
	}{
		{name: "ready", tag: "v0.1.0"},
		{name: "another tag", tag: "v0.1.1", want: "Chart.yaml has v0.1.0"},
		{name: "no tag", want: "Chart.yaml has v0.1.0"},
		{name: "nothing in the changelog", tag: "v0.1.0", changes: map[string]string{"CHANGELOG.md": "## Unreleased\n"}, want: "no section v0.1.0"},
		{name: "another Go", tag: "v0.1.0", changes: map[string]string{".go-version": "1.0.0"}, want: ".go-version has go1.0.0"},
		{name: "changes", tag: "v0.1.0", dirty: true, want: "not committed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := t.TempDir()

			files := maps.Clone(ready)
			maps.Copy(files, tc.changes)

			for name, content := range files {
				write(t, filepath.Join(root, name), content)
			}

			for _, args := range [][]string{
				{"init", "--quiet"}, {"add", "--all"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--message", "a"},
			} {
				git := exec.CommandContext(t.Context(), "git", args...)
				git.Dir = root

				if out, err := git.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}

			if tc.dirty {
				write(t, filepath.Join(root, "new"), "")
			}

			err := (&release{root: root, version: "v0.1.0"}).check(t.Context(), tc.tag)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestSection(t *testing.T) {
	changelog := "# Changelog\n\n## Unreleased\n\n### Added\n- new\n\n## v0.2.0 - 2027-01-01\n- two\n\n## v0.1.0\n- one\n"

	for version, want := range map[string]string{
		"Unreleased": "### Added\n- new", "v0.2.0": "- two", "v0.1.0": "- one", "v0.2": "", "v0.3.0": "",
	} {
		if got := section(changelog, version); got != want {
			t.Errorf("%s: got %q, want %q", version, got, want)
		}
	}
}
