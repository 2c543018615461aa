package render

import "syscall"

// attributes let a worker end with the program that has started it, also if that is
// killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
