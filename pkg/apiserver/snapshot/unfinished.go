package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	// unfinishedStart begins the names of files that are being written. They lie beside the file they
	// become, because a rename does not leave a file system.
	unfinishedStart = ".omni-snapshot-unfinished-"
	// scheduledUnfinished is the same for the schedule of earlier versions.
	scheduledUnfinished = ".omni-scheduled-unfinished-"
)

// IsUnfinished reports whether a file name is that of a snapshot that was being written.
func IsUnfinished(name string) bool {
	return strings.HasPrefix(name, unfinishedStart) || strings.HasPrefix(name, scheduledUnfinished)
}

// createUnfinished makes a file that becomes a snapshot. It is locked while it is open, so that others
// see that somebody writes it: the kernel lets go of it when the process is killed.
func createUnfinished(dir string) (*os.File, error) {
	if err := removeAbandoned(dir); err != nil {
		return nil, err
	}

	file, err := os.CreateTemp(dir, unfinishedStart+"*")
	if err != nil {
		return nil, fmt.Errorf("make a file for the snapshot: %w", err)
	}

	// Some network file systems have no locks. There the worst is that two processes which save into one
	// directory at once get in each other's way, and one of them fails.
	_ = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)

	return file, nil
}

// removeAbandoned removes what killed processes were writing.
func removeAbandoned(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("look for unfinished snapshots: %w", err)
	}

	var errs []error

	for _, entry := range entries {
		if IsUnfinished(entry.Name()) && entry.Type().IsRegular() {
			errs = append(errs, removeIfAbandoned(filepath.Join(dir, entry.Name())))
		}
	}

	return errors.Join(errs...)
}

func removeIfAbandoned(path string) error {
	file, err := os.Open(path)
	if err != nil { // gone, or of another user
		return nil
	}
	defer file.Close()

	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return nil
	}

	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove an unfinished snapshot: %w", err)
	}

	return nil
}
