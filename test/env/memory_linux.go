package env

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Memory is what the kernel cannot take back from the program and its children now, in bytes (RssAnon and RssShmem of
// /proc/<pid>/status), which is what fills the memory limit of a Pod. A child that ends meanwhile does not count.
func (c *component) Memory() (uint64, error) {
	own, err := heldMemory(c.current.pid)
	if err != nil {
		return 0, err
	}

	for _, child := range childrenOf(c.current.pid) {
		if held, err := heldMemory(child); err == nil {
			own += held
		}
	}

	return own, nil
}

func heldMemory(pid int) (uint64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read process status: %w", err)
	}

	var sum uint64

	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] != "RssAnon:" && fields[0] != "RssShmem:" {
			continue
		}

		kibibytes, err := strconv.ParseUint(fields[1], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read process status: %w", err)
		}

		sum += kibibytes << 10
	}

	return sum, nil
}

// childrenOf are the processes that a process has started and that run, by the fourth field of /proc/<pid>/stat. (The
// list of children that some kernels offer is not on all.)
func childrenOf(parent int) []int {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}

	var found []int

	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // the process has ended
		}

		// The name of the program, in parentheses, may hold anything.
		fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
		if len(fields) < 2 || fields[1] != strconv.Itoa(parent) {
			continue
		}

		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			found = append(found, pid)
		}
	}

	return found
}
