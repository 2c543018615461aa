package env

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// stopGrace is how long a process may take to end after SIGTERM before it is killed.
// Programs have limits of their own, of up to 30 seconds: the controller for what runs on, a replica of omni-apiserver
// for its delay and its watches. One that hangs exceeds any limit.
const stopGrace = 2 * time.Minute

// processSpec says what to start. The log file is appended to, so that the logs before and
// after a restart stay together.
type processSpec struct {
	name    string
	binary  string
	args    []string
	env     []string // added to the environment of this program
	logPath string
	memory  uint64 // what the program and its children may have together, in bytes; 0: no limit
	foreign bool   // not a program of this repository: with what status it ends is not judged
}

// process is one running child.
type process struct {
	spec    processSpec
	pid     int
	exited  chan struct{} // closed when the child has been waited for
	waitErr error         // result of the wait; read it only after exited is closed
	killed  atomic.Bool   // the end was asked for, so it is not a crash
	group   *memoryGroup  // what bounds its memory; may be nil
}

// limited is the command that starts the program, within a limit on memory if there is one.
func limited(spec processSpec) (binary string, args []string, group *memoryGroup, err error) {
	if spec.memory == 0 {
		return spec.binary, spec.args, nil, nil
	}

	if group, err = newMemoryGroup(spec.name, spec.memory); err != nil {
		return "", nil, nil, fmt.Errorf("start %s: %w", spec.name, err)
	}

	binary, args = group.wrap(spec.binary, spec.args)

	return binary, args, group, nil
}

// environment is this process's own, without the rare collection of garbage that its test program may have: what a program
// takes is measured as users have it.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "GOGC=") })
}

// startProcess starts the child and returns as soon as it exists, ready or not.
func startProcess(spec processSpec) (*process, error) {
	logFile, err := os.OpenFile(spec.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", spec.name, err)
	}

	binary, args, group, err := limited(spec)
	if err != nil {
		return nil, errors.Join(err, logFile.Close())
	}

	cmd := exec.Command(binary, args...)
	cmd.Env = append(environment(), spec.env...)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.SysProcAttr = childAttributes()

	p := &process{spec: spec, exited: make(chan struct{}), group: group}
	started := make(chan error)

	go func() {
		// The kernel's parent-death signal follows the thread that forked, not the whole
		// program. Keeping the thread for as long as the child lives avoids a surprise kill
		// when the Go runtime retires an idle thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer logFile.Close()

		if err := cmd.Start(); err != nil {
			started <- fmt.Errorf("start %s: %w", spec.name, err)

			return
		}

		p.pid = cmd.Process.Pid
		started <- nil
		p.waitErr = cmd.Wait()
		close(p.exited)

		if group != nil {
			_ = group.remove() // an empty group costs nothing
		}
	}()

	if err := <-started; err != nil {
		return nil, err
	}

	return p, nil
}

// stop asks the child to end and waits. It returns an error if the child had to be killed, had
// already ended without being asked, or if a program of ours says that it did not end well, as when
// its own limits for a stop did not suffice.
func (p *process) stop(grace time.Duration) error {
	if p.hasExited() {
		if p.killed.Load() {
			return nil
		}

		return p.crash()
	}

	p.killed.Store(true)

	if err := syscall.Kill(p.pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %s: %w", p.spec.name, err)
	}

	timer := time.NewTimer(grace)
	defer timer.Stop()

	select {
	case <-p.exited:
		return p.endedWell()
	case <-timer.C:
		p.kill()

		return fmt.Errorf("%s did not stop within %s and was killed; log: %s", p.spec.name, grace, p.spec.logPath)
	}
}

// endedWell returns an error if a program of ours gave a status of failure. The signal itself is a good end.
func (p *process) endedWell() error {
	var ended *exec.ExitError
	if p.spec.foreign || !errors.As(p.waitErr, &ended) || ended.ExitCode() <= 0 {
		return nil
	}

	return fmt.Errorf("%s failed to stop (%w); log %s ends with:\n%s", p.spec.name, p.waitErr, p.spec.logPath, logTail(p.spec.logPath, 15))
}

// kill ends the child and whatever it started at once (SIGKILL) and waits for it.
func (p *process) kill() {
	p.killed.Store(true)

	if !p.hasExited() {
		_ = syscall.Kill(-p.pid, syscall.SIGKILL) // the only failure is that it is gone already
	}

	<-p.exited
}

func (p *process) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// crash describes an end nobody asked for. Call it only after exited is closed.
func (p *process) crash() error {
	reason := "exit status 0"
	if p.waitErr != nil {
		reason = p.waitErr.Error()
	}

	return fmt.Errorf("%s ended by itself (%s); log %s ends with:\n%s",
		p.spec.name, reason, p.spec.logPath, logTail(p.spec.logPath, 15))
}

// logTail returns the last lines of a log file for an error message.
func logTail(path string, lines int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}

	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}

	return strings.Join(all, "\n")
}
