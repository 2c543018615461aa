package disk

import (
	"fmt"
	"os"
	"runtime"
)

// SyncDirectory makes new names, renames and removals in a directory survive a loss of power, where the system can.
func SyncDirectory(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // it refuses to write a directory to disk
	}

	file, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("open a directory: %w", err)
	}
	defer file.Close()

	if err := file.Sync(); err != nil {
		return fmt.Errorf("write a directory to disk: %w", err)
	}

	return nil
}
