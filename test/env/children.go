package env

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ChildrenOf are the processes that a process has started and that run, by the fourth field of /proc/<pid>/stat. (The
// list of children that some kernels offer is not on all.) There are none where there is no /proc.
func ChildrenOf(parent int) []int {
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
