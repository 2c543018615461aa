package disk_test

import (
	"os"
	"path/filepath"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/disk"
)

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")

	for _, text := range []string{"first", "second"} {
		if err := disk.WriteFile(path, []byte(text)); err != nil {
			t.Fatal(err)
		}

		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}

	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}

	// What cannot be put in place leaves nothing behind.
	if err := disk.WriteFile(dir, []byte("third")); err == nil {
		t.Error("a directory was replaced")
	}

	for _, in := range []string{dir, filepath.Dir(dir)} {
		if left, _ := filepath.Glob(filepath.Join(in, ".omni-unfinished-*")); len(left) > 0 {
			t.Errorf("left %v", left)
		}
	}
}

func TestMissingDirectory(t *testing.T) {
	if err := disk.SyncDirectory(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("synced")
	}
}
