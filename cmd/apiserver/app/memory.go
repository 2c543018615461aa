package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"k8s.io/klog/v2"
)

// memoryShare is the share of the container's memory, in percent, above which Go collects garbage more often. The
// rest is for memory that Go does not count, such as pages of the database that the kernel is about to drop.
const memoryShare = 85

// cgroupLimits are the files with the container's memory limit, in cgroups of version 2 and 1.
//
//nolint:gochecknoglobals // a constant
var cgroupLimits = []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"}

// respectMemoryLimit makes the garbage collector work harder near the container's limit, unless the environment sets
// GOMEMLIMIT. Without it, garbage is collected only when the heap has doubled, even if that is beyond the limit.
func respectMemoryLimit(root string) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}

	limit, err := containerMemory(root)
	if err != nil {
		klog.InfoS("The memory limit of the container cannot be read; set GOMEMLIMIT to bound garbage", "reason", err.Error())
	}

	if limit > 0 {
		debug.SetMemoryLimit(limit / 100 * memoryShare)
	}
}

// containerMemory is the memory limit of the container, in bytes; 0 if there is none.
func containerMemory(root string) (int64, error) {
	for _, path := range cgroupLimits {
		text, err := os.ReadFile(filepath.Join(root, path))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}

		if err != nil {
			return 0, err // names the file
		}

		value := strings.TrimSpace(string(text))
		if value == "max" {
			return 0, nil
		}

		limit, err := strconv.ParseInt(value, 10, 64)
		if err != nil || limit >= 1<<60 { // version 1 has no word for no limit
			return 0, err // names the value
		}

		return limit, nil
	}

	return 0, nil
}
