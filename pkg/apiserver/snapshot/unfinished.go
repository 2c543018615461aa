package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// unfinishedStart is the prefix of the names of files that are being written. Such a file lies in the directory
// of the snapshot it becomes, because a rename does not cross file systems.
const unfinishedStart = ".omni-snapshot-unfinished-"

// createUnfinished creates a file that becomes a snapshot. The file is locked while it is open, so that other
// processes see that somebody writes it; the kernel releases the lock when the process is killed. The lock is a shared
// one, so that bbolt can open the file before it gets its name.
func createUnfinished(dir string) (*os.File, error) {
	if err := removeAbandoned(dir); err != nil {
		return nil, err
	}

	file, err := os.CreateTemp(dir, unfinishedStart+"*")
	if err != nil {
		return nil, fmt.Errorf("make a file for the snapshot: %w", err)
	}

	// Some network file systems have no locks. At worst, two processes that save into one directory at the same time
	// disturb each other, and one of them fails.
	_ = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)

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
		if strings.HasPrefix(entry.Name(), unfinishedStart) && entry.Type().IsRegular() {
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
