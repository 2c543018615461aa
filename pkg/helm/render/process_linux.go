package render

import (
	"fmt"
	"os"
	"syscall"
)

// attributes let a worker end with the program that has started it, also if that is
// killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// residentMemory is how many bytes a process has in memory now that are of no file.
func residentMemory(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, fmt.Errorf("find out how much memory a process takes: %w", err)
	}

	var size, resident, ofFiles int64 // in pages
	if _, err := fmt.Sscan(string(text), &size, &resident, &ofFiles); err != nil {
		return 0, fmt.Errorf("find out how much memory a process takes: %w", err)
	}

	return (resident - ofFiles) * int64(os.Getpagesize()), nil
}
