//go:build unix

package disk

import (
	"fmt"
	"syscall"
)

// Free returns how much the disk of a directory has left for this process, in bytes.
func Free(dir string) (int64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0, fmt.Errorf("ask for the free space of %s: %w", dir, err)
	}

	return int64(disk.Bavail) * int64(disk.Bsize), nil //nolint:unconvert,gosec // the types differ between systems; no disk is that large
}
