//go:build unix && !linux

package env

import "syscall"

// childAttributes gives a child its own process group. Only Linux can tie the child's life
// to its parent's.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
