package env

import "syscall"

// childAttributes gives a child its own process group, and has the kernel kill it when the
// thread that started it ends.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
