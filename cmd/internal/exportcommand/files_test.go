package exportcommand

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"omni.texashpc.com/omni-cluster-operator/pkg/export"
)

// filesOf reads a directory.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()

	files := map[string]string{}

	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}

	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}

		files[entry.Name()] = string(text)
	}

	return files
}

func TestExportFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "directory")
	result := &export.Result{
		Connection: &export.File{Name: "connection-omni", Text: []byte("connection")},
		Clusters:   []export.File{{Name: "cluster-a", Text: []byte("cluster a")}, {Name: "cluster-b", Text: []byte("cluster b")}},
	}

	var stderr bytes.Buffer
	if err := writeFiles(dir, result, &stderr); err != nil {
		t.Fatal(err)
	}

	want := map[string]string{"connection-omni.yaml": "connection", "cluster-a.yaml": "cluster a", "cluster-b.yaml": "cluster b"}
	if diff := cmp.Diff(want, filesOf(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}

	lines := "wrote " + filepath.Join(dir, "connection-omni.yaml") + "\nwrote " + filepath.Join(dir, "cluster-a.yaml") + "\nwrote " + filepath.Join(dir, "cluster-b.yaml") + "\n"
	if stderr.String() != lines {
		t.Errorf("printed %q, want %q", stderr.String(), lines)
	}

	// The content may be secret.
	for name, wantMode := range map[string]fs.FileMode{"": 0o750, "cluster-a.yaml": 0o600} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm()&^wantMode != 0 {
			t.Errorf("%q: %v, mode %v", name, err, info.Mode())
		}
	}

	// A second run with the same content succeeds.
	if err := writeFiles(dir, result, &stderr); err != nil {
		t.Error(err)
	}

	// One that is not asked for is not looked at.
	without := &export.Result{Clusters: result.Clusters}
	if err := errors.Join(os.Remove(filepath.Join(dir, "connection-omni.yaml")), writeFiles(dir, without, io.Discard)); err != nil {
		t.Error(err)
	}

	if _, err := os.Stat(filepath.Join(dir, "connection-omni.yaml")); err == nil {
		t.Error("a connection was written that is not in the export")
	}

	if err := writeFiles(dir, result, io.Discard); err != nil {
		t.Error(err)
	}

	// Edited files stop the whole export, and the error names each of them.
	result.Connection.Text, result.Clusters[0].Text = []byte("other"), []byte("other")
	result.Clusters = append(result.Clusters, export.File{Name: "cluster-c", Text: []byte("cluster c")})

	err := writeFiles(dir, result, &stderr)
	if err == nil || !strings.Contains(err.Error(), "connection-omni.yaml is there with another content") || !strings.Contains(err.Error(), "cluster-a.yaml is there") {
		t.Errorf("error %v", err)
	}

	if diff := cmp.Diff(want, filesOf(t, dir)); diff != "" {
		t.Errorf("files after a refusal (-want +got):\n%s", diff)
	}
}

func TestExportFilesThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}

	if err := os.Mkdir(filepath.Join(dir, "cluster-a.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}

	result := &export.Result{Clusters: []export.File{{Name: "cluster-a"}}}

	for name, path := range map[string]string{"a file in the way": filepath.Join(dir, "file"), "a directory in the way": dir} {
		if err := writeFiles(path, result, &bytes.Buffer{}); err == nil || !strings.HasPrefix(err.Error(), "--output-dir: ") {
			t.Errorf("%s: %v", name, err)
		}
	}

	// A failed attempt leaves nothing behind.
	if diff := cmp.Diff([]string{"cluster-a.yaml", "file"}, namesIn(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func namesIn(t *testing.T, dir string) []string {
	t.Helper()

	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}

	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}

	return names
}
