package worker

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxStack is how deep templates may call each other, in bytes of stack. Helm's own bound on
	// includes, 1,000, is reached before.
	maxStack = 32 << 20
	// sparePercent is how much of the memory the garbage collector leaves, so that it works harder
	// before the limit is hit.
	sparePercent = 20
	percent      = 100
)

// confine takes from the process what rendering does not need: memory beyond the
// bound, on top of what the program has by now, files, connections, core dumps.
// Nothing foreign may be read before. An error of errNoFilter says that everything
// was done but the last.
//
// RLIMIT_DATA counts what is mapped for writing, but the kernel does not compare it when a
// reservation of Go's heap becomes writable, so one large value passes it. RLIMIT_AS counts reservations. The parent
// watches what is resident between the two.
func confine(memory int64) error {
	debug.SetTraceback("none")
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(memory - memory*sparePercent/percent)
	runtime.GOMAXPROCS(1) // one chart at a time; more would only collect garbage

	data, space, err := mapped()
	if err != nil {
		return err
	}

	// If the kernel runs out of memory, let it take this process first. It works without.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)

	// The runtime opens what it needs for waiting with its first timer.
	<-time.After(time.Nanosecond)

	if err := closeInherited(); err != nil {
		return err
	}

	limits := map[int]uint64{
		unix.RLIMIT_DATA:   data + uint64(memory),                             //nolint:gosec // a flag that was checked
		unix.RLIMIT_AS:     space + uint64(memory) + heapArena - unusedHeap(), //nolint:gosec // as above
		unix.RLIMIT_CORE:   0,
		unix.RLIMIT_FSIZE:  0,
		unix.RLIMIT_NOFILE: 0, // what is open stays open, nothing more can be
	}

	for resource, limit := range limits {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("bound the resource %d: %w", resource, err)
		}
	}

	if err := errors.Join(
		unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
		unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0), // no other process of the same user may look inside
	); err != nil {
		return fmt.Errorf("give up privileges: %w", err)
	}

	return filterCalls()
}

// closeInherited closes what the program that has started this one was started with
// itself. The standard streams stay, and what the runtime waits with.
func closeInherited() error {
	const (
		directory  = "/proc/self/fd/"
		lastStream = 2
	)

	open, err := os.ReadDir(directory)
	if err != nil {
		return fmt.Errorf("find out which files are open: %w", err)
	}

	for _, entry := range open {
		descriptor, err := strconv.Atoi(entry.Name())
		if err != nil || descriptor <= lastStream {
			continue
		}

		// The directory itself is not open any more.
		target, err := os.Readlink(directory + entry.Name())
		if err == nil && !strings.HasPrefix(target, "anon_inode:") {
			_ = unix.Close(descriptor) // closed, whatever the error is
		}
	}

	return nil
}

// heapArena is in which steps Go reserves address space for its heap, in bytes.
const heapArena = 64 << 20

// unusedHeap is how much of the reserved heap the heap may still take, in bytes.
func unusedHeap() uint64 {
	var stats runtime.MemStats

	runtime.ReadMemStats(&stats)

	return (heapArena - (stats.HeapSys+stats.StackInuse)%heapArena) % heapArena
}

// mapped is how many bytes the process has mapped for writing, and how many in all.
func mapped() (data, space uint64, err error) {
	// Of /proc/self/statm, in pages.
	const (
		spaceField = 0
		dataField  = 5 // data and stack
	)

	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, 0, fmt.Errorf("find out how much memory the program takes: %w", err)
	}

	fields := bytes.Fields(text)
	if len(fields) <= dataField {
		return 0, 0, errors.New("/proc/self/statm is not as expected")
	}

	for field, bytes := range map[int]*uint64{spaceField: &space, dataField: &data} {
		pages, err := strconv.ParseUint(string(fields[field]), 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("/proc/self/statm: %w", err)
		}

		*bytes = pages * uint64(os.Getpagesize()) //nolint:gosec // positive
	}

	return data, space, nil
}
