package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of processor time in /proc, which is the same on every Linux.
const clockTick = 10 * time.Millisecond

// memory of a process, in bytes.
type memory struct {
	// resident is everything in RAM; file is its part that is a file's content (programs, and the
	// database of the embedded etcd) and can be dropped by the kernel at any time; peak is the
	// largest resident so far.
	resident, file, peak uint64
}

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

// memoryOf reads the memory of a running process.
func memoryOf(pid int) (memory, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, fmt.Errorf("read process status: %w", err)
	}

	return parseMemory(string(status))
}

// parseCPU reads the processor time, user and system, out of the content of /proc/<pid>/stat.
func parseCPU(stat string) (time.Duration, error) {
	// The name of the program, in parentheses, may hold anything.
	_, rest, found := strings.Cut(stat[max(0, strings.LastIndexByte(stat, ')')):], ") ")
	fields := strings.Fields(rest)

	if !found || len(fields) < 13 {
		return 0, errors.New("read processor time: too few fields")
	}

	var sum int64

	for _, field := range fields[11:13] { // utime and stime, fields 14 and 15 of the whole line
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read processor time: %w", err)
		}

		sum += ticks
	}

	return time.Duration(sum) * clockTick, nil
}

// cpuOf reads the processor time of a running process.
func cpuOf(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read processor time: %w", err)
	}

	return parseCPU(string(stat))
}
