package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// clockTick is the unit of processor time in /proc, which is the same on every Linux.
const clockTick = 10 * time.Millisecond

// memory of a process and its children, in bytes.
type memory struct {
	// resident is everything in RAM; file is its part that is a file's content (programs, and the
	// database of the embedded etcd) and can be dropped by the kernel at any time. The files of
	// children count in neither: they are their parent's. peak is the largest resident so far, without
	// children.
	resident, file, peak uint64
}

// anonymous is the part that the kernel cannot drop: what the program itself holds.
func (m memory) anonymous() uint64 { return m.resident - m.file }

// parseMemory reads the content of /proc/<pid>/status.
func parseMemory(status string) (memory, error) {
	values := map[string]uint64{}

	for line := range strings.Lines(status) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[2] != "kB" {
			continue
		}

		value, err := strconv.ParseUint(fields[1], 10, 64)
		if err != nil {
			return memory{}, fmt.Errorf("read process status: %w", err)
		}

		values[strings.TrimSuffix(fields[0], ":")] = value << 10
	}

	if values["VmRSS"] == 0 {
		return memory{}, errors.New("read process status: it has no VmRSS")
	}

	return memory{resident: values["VmRSS"], file: values["RssFile"], peak: values["VmHWM"]}, nil
}

// memoryOf reads the memory of a running process and of its children. A child that ends meanwhile does not count.
func memoryOf(pid int) (memory, error) {
	sum, err := ownMemory(pid)
	if err != nil {
		return memory{}, err
	}

	for _, child := range env.ChildrenOf(pid) {
		if held, err := ownMemory(child); err == nil {
			sum.resident += held.anonymous()
		}
	}

	return sum, nil
}

func ownMemory(pid int) (memory, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, fmt.Errorf("read process status: %w", err)
	}

	return parseMemory(string(status))
}

// parseCPU reads the processor time, user and system, out of the content of /proc/<pid>/stat: that of the process and that
// of its children that have ended.
func parseCPU(stat string) (time.Duration, error) {
	// The name of the program, in parentheses, may hold anything.
	_, rest, found := strings.Cut(stat[max(0, strings.LastIndexByte(stat, ')')):], ") ")
	fields := strings.Fields(rest)

	if !found || len(fields) < 15 {
		return 0, errors.New("read processor time: too few fields")
	}

	var sum int64

	for _, field := range fields[11:15] { // utime, stime, cutime and cstime, fields 14 to 17 of the whole line
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read processor time: %w", err)
		}

		sum += ticks
	}

	return time.Duration(sum) * clockTick, nil
}

// cpuOf reads the processor time of a running process and of its children.
func cpuOf(pid int) (time.Duration, error) {
	var children time.Duration

	for _, child := range env.ChildrenOf(pid) {
		if used, err := ownCPU(child); err == nil {
			children += used
		}
	}

	own, err := ownCPU(pid)

	return own + children, err
}

func ownCPU(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read processor time: %w", err)
	}

	return parseCPU(string(stat))
}

// cpuOfThis reads the processor time of this process without that of its children.
func cpuOfThis() (time.Duration, error) {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return 0, fmt.Errorf("read processor time: %w", err)
	}

	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}
