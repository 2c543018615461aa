// Package disk writes files that survive a loss of power, and asks how much space is left.
package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// WriteFile writes the complete file or none, and returns when the file is on the disk: at every moment the file of before or
// the new one is there. Only the user may read it.
func WriteFile(path string, text []byte) error {
	dir := filepath.Dir(path)

	temporary, err := os.CreateTemp(dir, ".omni-unfinished-*") // its mode is 0600
	if err != nil {
		return err
	}

	_, err = temporary.Write(text)
	err = errors.Join(err, temporary.Sync())

	if err = errors.Join(err, temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), path)
	}

	if err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}

	return SyncDirectory(dir)
}
