package env

import (
	"fmt"
	"os"
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

	for _, child := range ChildrenOf(c.current.pid) {
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
