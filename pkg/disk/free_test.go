//go:build unix

package disk_test

import (
	"path/filepath"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/disk"
)

func TestFree(t *testing.T) {
	dir := t.TempDir()

	if free, err := disk.Free(dir); err != nil || free <= 0 {
		t.Errorf("%d bytes free: %v", free, err)
	}

	if free, err := disk.Free(filepath.Join(dir, "missing")); err == nil {
		t.Errorf("%d bytes free", free)
	}
}
