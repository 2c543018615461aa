package render_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// children are the processes of this one that are workers.
func children(t *testing.T) []int {
	t.Helper()

	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}

	var found []int

	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // gone
		}

		// pid (name) state parent
		fields := strings.Fields(string(text)[strings.LastIndex(string(text), ")")+1:])
		if len(fields) < 2 || fields[1] != strconv.Itoa(os.Getpid()) || fields[0] == "Z" {
			continue
		}

		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			t.Fatal(err)
		}

		found = append(found, pid)
	}

	return found
}

// hold is a chart that waits in a lookup, and the lookup.
func hold() (packed []byte, lookup render.Lookup, begun chan struct{}, release func()) {
	begun, end := make(chan struct{}, 10), make(chan struct{})

	return chartOf(`{{ lookup "v1" "Secret" "a" "b" }}`), func(ctx context.Context, _ render.Question) render.Reply {
		begun <- struct{}{}

		select {
		case <-end:
		case <-ctx.Done():
		}

		return render.Reply{}
	}, begun, sync.OnceFunc(func() { close(end) })
}

// Fields of /proc/<pid>/statm.
const (
	space = 0 // all that is mapped
	data  = 5 // what is mapped for writing
)

// mapped is how many bytes a process has mapped, by a field of its statm.
func mapped(t *testing.T, pid, field int) uint64 {
	t.Helper()

	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}

	pages, err := strconv.ParseUint(strings.Fields(string(text))[field], 10, 64)
	if err != nil {
		t.Fatal(err)
	}

	return pages * uint64(os.Getpagesize())
}

// A worker has nothing of the process that has started it, and can get nothing.
func TestAWorkerHasNothing(t *testing.T) {
	t.Setenv("TOKEN", "canary")

	packed, lookup, begun, release := hold()
	pool := newPool(t, render.Options{})
	done := make(chan error, 1)

	go func() {
		_, _, err := pool.Render(t.Context(), "group", jobOf(t, nil), packed, lookup)
		done <- err
	}()
	<-begun

	pids := children(t)
	if len(pids) != 1 {
		t.Fatalf("workers %v", pids)
	}

	for resource, want := range map[int]uint64{unix.RLIMIT_NOFILE: 0, unix.RLIMIT_FSIZE: 0, unix.RLIMIT_CORE: 0} {
		var limit unix.Rlimit
		if err := unix.Prlimit(pids[0], resource, nil, &limit); err != nil || limit.Cur != want || limit.Max != want {
			t.Errorf("limit %d is %+v, %v", resource, limit, err)
		}
	}

	// What it has by now is more than what it had when the bounds were set. Go's heap grows in steps of 64 MiB.
	for resource, most := range map[int]uint64{
		unix.RLIMIT_DATA: mapped(t, pids[0], data) + render.DefaultMemory,
		unix.RLIMIT_AS:   mapped(t, pids[0], space) + render.DefaultMemory + 64<<20,
	} {
		var memory unix.Rlimit
		if err := unix.Prlimit(pids[0], resource, nil, &memory); err != nil || memory.Max != memory.Cur || memory.Max > most {
			t.Errorf("memory is not bounded: resource %d, %+v, %v", resource, memory, err)
		}
	}

	if os.Getuid() == 0 { // others may not even look
		environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pids[0]))
		if err != nil || len(environment) > 0 {
			t.Errorf("the environment is %q, %v", environment, err)
		}

		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pids[0]))
		if err != nil || len(files) > 5 { // three pipes, and two of the runtime
			t.Errorf("open files %v, %v", files, err)
		}
	}

	release()

	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A worker is used again, and ends when there is nothing to do.
func TestWorkersAreReusedAndEnd(t *testing.T) {
	pool := newPool(t, render.Options{Idle: 200 * time.Millisecond})
	first := 0

	for i := range 5 {
		if _, _, err := pool.Render(t.Context(), "group", jobOf(t, nil), chartOf("a: b"), nothing); err != nil {
			t.Fatal(err)
		}

		if pids := children(t); i == 0 && len(pids) == 1 {
			first = pids[0]
		} else if len(pids) != 1 || pids[0] != first {
			t.Logf("workers %v, the first was %d", pids, first) // on a busy machine one may have ended meanwhile
		}
	}

	await.Until(t, "the worker ends", func() bool { return len(children(t)) == 0 })
}

// One group leaves a worker to the others.
func TestAGroupLeavesAWorker(t *testing.T) {
	packed, lookup, begun, release := hold()
	pool := newPool(t, render.Options{Workers: 2})
	done := make(chan error, 3)

	for range 3 {
		go func() {
			_, _, err := pool.Render(t.Context(), "greedy", jobOf(t, nil), packed, lookup)
			done <- err
		}()
	}

	<-begun

	if _, _, err := pool.Render(t.Context(), "other", jobOf(t, nil), chartOf("a: b"), nothing); err != nil {
		t.Error(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if _, _, err := pool.Render(ctx, "greedy", jobOf(t, nil), chartOf("a: b"), nothing); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}

	release()

	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// A worker that somebody kills while it renders is no fault of the chart; one that is idle is replaced.
func TestAWorkerIsKilled(t *testing.T) {
	packed, lookup, begun, release := hold()
	defer release()

	pool := newPool(t, render.Options{})
	done := make(chan error, 1)

	go func() {
		_, _, err := pool.Render(t.Context(), "group", jobOf(t, nil), packed, lookup)
		done <- err
	}()
	<-begun
	kill(t, children(t)[0])
	release()

	err := <-done

	var refusal *render.RefusedError
	if err == nil || errors.As(err, &refusal) || errors.Is(err, render.ErrUnavailable) || !strings.Contains(err.Error(), "somebody killed it") {
		t.Errorf("got %v", err)
	}

	for range 3 {
		if _, _, err := pool.Render(t.Context(), "group", jobOf(t, nil), chartOf("a: b"), nothing); err != nil {
			t.Fatal(err)
		}

		kill(t, children(t)[0])
	}
}

func kill(t *testing.T, pid int) {
	t.Helper()

	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// Who does not want a chart any more does not wait for it, and its worker ends.
func TestACancelledChart(t *testing.T) {
	packed, lookup, begun, _ := hold()
	pool := newPool(t, render.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)

	go func() {
		_, _, err := pool.Render(ctx, "group", jobOf(t, nil), packed, lookup)
		done <- err
	}()
	<-begun
	cancel()

	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}

	if pids := children(t); len(pids) > 0 {
		t.Errorf("workers %v", pids)
	}
}

// A program that cannot be started, or is no worker, is no fault of the chart.
func TestNoWorker(t *testing.T) {
	echo, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}

	for _, program := range []string{"/does/not/exist", echo} {
		_, _, err := newPool(t, render.Options{Program: program}).Render(t.Context(), "group", jobOf(t, nil), chartOf("a: b"), nothing)
		if !errors.Is(err, render.ErrUnavailable) {
			t.Errorf("%s: %v", program, err)
		}
	}
}

// A worker does not outlive the process that has started it, even in the middle of a chart.
func TestAWorkerEndsWithItsParent(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}

	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}

	ready, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}

	worker := exec.CommandContext(t.Context(), program, render.Command, strconv.Itoa(render.DefaultMemory))
	worker.Env, worker.Stdin, worker.Stdout = []string{}, in, stdout

	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}

	if err := errors.Join(in.Close(), stdout.Close()); err != nil {
		t.Fatal(err)
	}

	if kind, _, err := render.ReadFrame(ready); err != nil || kind != render.KindReady {
		t.Fatalf("%q, %v", kind, err)
	}

	endless := chartOf(`{{ range $a := until 1000 }}{{ range $b := until 1000000 }}{{ end }}{{ end }}`)
	if err := errors.Join(render.WriteFrame(out, render.KindJob, []byte(`{"values":{}}`)), render.WriteFrame(out, render.KindArchive, endless), out.Close()); err != nil {
		t.Fatal(err)
	}

	if err := worker.Wait(); err != nil {
		t.Errorf("the worker ended with %v", err)
	}
}
