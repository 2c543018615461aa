package env

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// parentRole makes this test program, started again by a test, play the parent that dies.
const parentRole = "ENV_TEST_PARENT_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(parentRole) != "" {
		playParent()
	}

	os.Exit(m.Run())
}

// playParent starts a child, prints its process ID, and waits to be killed.
func playParent() {
	p, err := startProcess(processSpec{name: "sleep", binary: "sleep", args: []string{"600"}, logPath: os.DevNull})
	if err != nil {
		panic(err)
	}

	os.Stdout.WriteString(strconv.Itoa(p.pid) + "\n")
	<-p.exited
	os.Exit(1)
}

func shell(t *testing.T, script string) *process {
	t.Helper()

	p, err := startProcess(processSpec{
		name: "child", binary: "sh", args: []string{"-c", script}, logPath: filepath.Join(t.TempDir(), "log"),
	})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(p.kill)

	return p
}

func TestProcessStop(t *testing.T) {
	tests := []struct {
		name      string
		script    string
		grace     time.Duration
		wantError string // empty: none
	}{
		{"ends on SIGTERM", "trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done", time.Minute, ""},
		{"ends by SIGTERM", "echo up; while :; do sleep 0.05; done", time.Minute, ""},
		{"fails on SIGTERM", "trap 'echo stuck; exit 1' TERM; echo up; while :; do sleep 0.05; done", time.Minute, "stuck"},
		{"ignores SIGTERM", "trap '' TERM; echo up; while :; do sleep 0.05; done", 300 * time.Millisecond, "child did not stop within 300ms and was killed"},
		{"ended before", "echo up; echo broken; exit 3", 10 * time.Second, "child ended by itself (exit status 3)"},
	}

	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := shell(t, test.script)
			waitForLog(t, p, "up")

			if strings.Contains(test.script, "exit 3") {
				<-p.exited
			}

			err := p.stop(test.grace)

			switch {
			case test.wantError == "" && err != nil:
				t.Errorf("stop: %v", err)
			case test.wantError != "" && (err == nil || !strings.Contains(err.Error(), test.wantError)):
				t.Errorf("stop: %v, want %q", err, test.wantError)
			}

			if !p.hasExited() {
				t.Error("the child still runs")
			}
		})
	}
}

// How the programs of others end is not ours to judge.
func TestStopOfAForeignProcess(t *testing.T) {
	p := shell(t, "trap 'exit 1' TERM; echo up; while :; do sleep 0.05; done")
	p.spec.foreign = true

	waitForLog(t, p, "up")

	if err := p.stop(time.Minute); err != nil {
		t.Error(err)
	}
}

func TestProcessCrashShowsLog(t *testing.T) {
	p := shell(t, "echo first >&2; echo the reason >&2; exit 4")

	err := p.eventuallyAlive(t.Context(), time.Minute, "the impossible", func(context.Context) error { return errors.New("not yet") })
	if err == nil || !strings.Contains(err.Error(), "first\nthe reason") {
		t.Errorf("error %v does not show the log", err)
	}
}

func TestProcessKillReachesGrandchildren(t *testing.T) {
	p := shell(t, "sleep 600 & echo pid $!; wait")
	waitForLog(t, p, "pid ")

	grandchild, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(logTail(p.spec.logPath, 1)), "pid "))
	if err != nil {
		t.Fatal(err)
	}

	p.kill()
	waitGone(t, grandchild)

	if err := p.stop(time.Second); err != nil {
		t.Errorf("stop after kill: %v", err)
	}
}

func TestStartProcessMissingProgram(t *testing.T) {
	_, err := startProcess(processSpec{name: "ghost", binary: "/no/such/program", logPath: os.DevNull})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want not exist", err)
	}
}

// TestChildDiesWithParent kills the parent in a way that lets it clean nothing up.
func TestChildDiesWithParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("only Linux ties a child's life to its parent's; nothing to check here")

		return
	}

	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentRole+"=1")

	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}

	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}

	line := make([]byte, 32)
	n, err := out.Read(line)

	if err != nil {
		t.Fatal(err)
	}

	child, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
	if err != nil {
		t.Fatal(err)
	}

	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}

	_ = parent.Wait() // it was killed, which is an error
	waitGone(t, child)
}

func waitForLog(t *testing.T, p *process, text string) {
	t.Helper()

	if err := Eventually(t.Context(), time.Minute, "the child to print "+text, func(context.Context) error {
		if log := logTail(p.spec.logPath, 10); !strings.Contains(log, text) {
			return errors.New("log: " + log)
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// waitGone waits until a process is gone or a zombie that nobody waits for.
func waitGone(t *testing.T, pid int) {
	t.Helper()

	if err := Eventually(t.Context(), time.Minute, "process "+strconv.Itoa(pid)+" to end", func(context.Context) error {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return nil
		}

		if stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); strings.Contains(string(stat), ") Z ") {
			return nil
		}

		return errors.New("it runs")
	}); err != nil {
		t.Fatal(err)
	}
}
