package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// errLocked says that another program (or another part of this one) holds the lock.
var errLocked = errors.New("locked by another process")

// fileLock is an advisory lock that the kernel drops when the program ends.
type fileLock struct{ file *os.File }

// tryLockFile takes the lock or returns errLocked at once.
func tryLockFile(path string) (*fileLock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}

	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()

		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errLocked
		}

		return nil, fmt.Errorf("lock %s: %w", path, err)
	}

	return &fileLock{file: file}, nil
}

func (l *fileLock) release() { l.file.Close() }

// lockFile waits for the lock until ctx ends. waiting, if not nil, is called once if the
// lock is not free at first.
func lockFile(ctx context.Context, path string, waiting func()) (*fileLock, error) {
	ticker := time.NewTicker(4 * pollInterval)
	defer ticker.Stop()

	for {
		lock, err := tryLockFile(path)
		if !errors.Is(err, errLocked) {
			return lock, err
		}

		if waiting != nil {
			waiting()
			waiting = nil
		}

		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for lock %s: %w", path, ctx.Err())
		case <-ticker.C:
		}
	}
}
