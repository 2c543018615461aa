package worker

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tried is the argument that makes the test program one that tries what a worker may not.
const tried = "try-what-is-refused"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == tried {
		tryRefused()
	}

	os.Exit(m.Run())
}

// attempts is what the kernel answered a confined process, by what it tried, as numbers of errors.
type attempts struct {
	// Confined is what confine returned.
	Confined string `json:"confined"`
	// Answers are those to a thread that was there before, and to the one that was confined.
	Answers [2]map[string]int `json:"answers"`
}

// tryRefused is confined and tries everything.
func tryRefused() {
	var found attempts

	// A thread that is there before the filter is.
	ask, answer := make(chan struct{}), make(chan map[string]int)

	go func() {
		runtime.LockOSThread()
		<-ask
		answer <- try()
	}()

	runtime.LockOSThread()

	if err := confine(1 << 30); err != nil && !errors.Is(err, errNoFilter) {
		os.Exit(exitSetUp)
	} else if err != nil {
		found.Confined = err.Error()
	}

	close(ask)

	found.Answers[0], found.Answers[1] = <-answer, try()

	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		os.Exit(exitLost)
	}

	os.Exit(exitDone)
}

// try tries what a worker may not. What would succeed does no harm.
func try() map[string]int {
	path, _ := unix.BytePtrFromString("/dev/null")
	raw := func(call uintptr, arguments ...uintptr) int {
		var all [6]uintptr

		copy(all[:], arguments)

		_, _, failed := unix.RawSyscall6(call, all[0], all[1], all[2], all[3], all[4], all[5])

		return int(failed)
	}
	parent := uintptr(os.Getppid())
	here := unix.AT_FDCWD
	answers := map[string]int{
		"a file":      raw(unix.SYS_OPENAT, uintptr(here), uintptr(unsafe.Pointer(path)), unix.O_RDONLY),
		"a socket":    raw(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM),
		"a program":   raw(unix.SYS_EXECVE, 0, 0, 0),
		"a debugger":  raw(unix.SYS_PTRACE, ^uintptr(0)),
		"the parent":  raw(unix.SYS_KILL, parent, 0),
		"its threads": raw(unix.SYS_TGKILL, parent, parent, 0),
		"a process":   raw(unix.SYS_CLONE, unix.CLONE_SIGHAND), // flags that are wrong, so that there is none
	}

	runtime.KeepAlive(path)

	return answers
}

// The kernel refuses all threads of a worker to open a file or a socket, and to touch other processes, if it is able to
// filter. Without that, none can be opened because there is no number for it.
func TestSystemCallsAreFiltered(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}

	said, err := exec.CommandContext(t.Context(), program, tried).Output()
	if err != nil {
		t.Fatal(err)
	}

	var found attempts
	if err := json.Unmarshal(said, &found); err != nil {
		t.Fatal(err)
	}

	actions, _ := os.ReadFile("/proc/sys/kernel/seccomp/actions_avail") // there is none in a kernel without filters
	able := strings.Contains(string(actions), "errno") && (runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64")

	if able != (found.Confined == "") {
		t.Errorf("the kernel offers %q, and the process says %q", actions, found.Confined)
	}

	for thread, answers := range found.Answers {
		for what, answer := range answers {
			switch {
			case able && answer != int(unix.EPERM):
				t.Errorf("thread %d, %s: %s", thread, what, unix.ErrnoName(unix.Errno(answer)))
			case !able && (what == "a file" || what == "a socket") && answer != int(unix.EMFILE):
				t.Errorf("thread %d, %s, without a filter: %s", thread, what, unix.ErrnoName(unix.Errno(answer)))
			}
		}
	}
}
