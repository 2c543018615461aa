//go:build !linux

package render

import "syscall"

// attributes are Linux's business; elsewhere a worker ends when its input does.
func attributes() *syscall.SysProcAttr { return nil }
