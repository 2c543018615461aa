package env

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The roots of the kernel's memory control groups, in versions 1 and 2.
const (
	memoryGroupsV1 = "/sys/fs/cgroup/memory"
	memoryGroupsV2 = "/sys/fs/cgroup"
)

// memoryGroup is a control group whose processes together may have so much memory, as those of a container.
type memoryGroup struct{ dir string }

// CanLimitMemory returns why this machine does not let a test bound the memory of what it starts, or nil. It takes the
// right to make a control group, which root has unless it is in a container.
func CanLimitMemory() error {
	group, err := newMemoryGroup("probe", 1<<30)
	if err != nil {
		return err
	}

	return group.remove()
}

func newMemoryGroup(name string, limit uint64) (*memoryGroup, error) {
	root, file := memoryGroupsV2, "memory.max"
	if _, err := os.Stat(filepath.Join(memoryGroupsV1, "memory.limit_in_bytes")); err == nil {
		root, file = memoryGroupsV1, "memory.limit_in_bytes"
	}

	group := &memoryGroup{filepath.Join(root, fmt.Sprintf("omni-test-%d-%s", os.Getpid(), name))}
	if err := os.Mkdir(group.dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("make control group: %w", err)
	}

	if err := os.WriteFile(filepath.Join(group.dir, file), []byte(strconv.FormatUint(limit, 10)), 0); err != nil {
		return nil, errors.Join(fmt.Errorf("limit memory of control group: %w", err), group.remove())
	}

	return group, nil
}

// wrap makes a command start inside the group, so that what it starts is in it, too. The process keeps its ID.
func (g *memoryGroup) wrap(binary string, args []string) (string, []string) {
	enter := []string{"-c", `echo $$ >"$0" && exec "$@"`, filepath.Join(g.dir, "cgroup.procs"), binary}

	return "/bin/sh", append(enter, args...)
}

// kills is how many processes of the group the kernel has killed for want of memory.
func (g *memoryGroup) kills() int {
	for _, name := range []string{"memory.oom_control", "memory.events"} {
		content, err := os.ReadFile(filepath.Join(g.dir, name))
		if err != nil {
			continue
		}

		for line := range strings.Lines(string(content)) {
			if count, found := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); found {
				number, _ := strconv.Atoi(count) // the kernel writes numbers

				return number
			}
		}
	}

	return 0
}

// remove removes the group. Children of its process may end a moment later than it.
func (g *memoryGroup) remove() error {
	const attempts, pause = 50, 100 * time.Millisecond

	var err error

	for range attempts {
		if err = os.Remove(g.dir); err == nil || errors.Is(err, os.ErrNotExist) {
			return nil
		}

		time.Sleep(pause)
	}

	return fmt.Errorf("remove control group: %w", err)
}
