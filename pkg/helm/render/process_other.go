//go:build !linux

package render

import (
	"errors"
	"syscall"
)

// attributes are Linux's business; elsewhere a worker ends when its input does.
func attributes() *syscall.SysProcAttr { return nil }

// residentMemory is Linux's business as well: elsewhere no worker starts.
func residentMemory(int) (int64, error) { return 0, errors.ErrUnsupported }
