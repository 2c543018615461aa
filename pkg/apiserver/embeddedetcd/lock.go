package embeddedetcd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const lockName = "omni-apiserver.lock"

// directoryLock is held for the life of the process; the kernel releases it even after a kill. etcd locks its
// database too, but waits for that lock silently instead of saying which process holds it.
type directoryLock struct{ file *os.File }

func lockDirectory(dir string) (*directoryLock, error) {
	path := filepath.Join(dir, lockName)

	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the etcd data directory: %w", err)
	}

	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()

		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("another omni-apiserver uses the etcd data directory %s: "+
				"stop it, or give this one a directory of its own", dir)
		}

		return nil, fmt.Errorf("lock the etcd data directory: %w", err)
	}

	return &directoryLock{file: file}, nil
}

// release lets the next process take the lock. The file stays: if it were removed, two processes could lock two
// different files of the same name.
func (l *directoryLock) release() error {
	if l.file == nil {
		return nil
	}

	file := l.file
	l.file = nil

	if err := file.Close(); err != nil {
		return fmt.Errorf("unlock the etcd data directory: %w", err)
	}

	return nil
}
