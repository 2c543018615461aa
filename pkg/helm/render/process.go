package render

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

const (
	// startTime is how long a worker may take until it is ready, on a busy machine.
	startTime = 30 * time.Second
	// watchInterval is how often the memory of a worker is looked at while it works.
	watchInterval = 10 * time.Millisecond
)

// process is one worker. It does one piece of work at a time.
type process struct {
	command *exec.Cmd
	to      *os.File
	from    *os.File
	said    tail          // on its standard error
	exited  chan struct{} // closed when the process is gone and said is complete
	used    bool          // it has read something foreign before
	retire  *time.Timer   // while it is idle
	base    int64         // what it had in memory when it was ready, in bytes
	// unfiltered is why the kernel does not filter its system calls; empty if it does.
	unfiltered string
}

// start starts a worker and waits until it is ready. Errors wrap ErrUnavailable, or
// are that of ctx.
func start(ctx context.Context, program string, memory int64) (*process, error) {
	p := &process{exited: make(chan struct{})}

	p.command = exec.Command(program, Command, strconv.FormatInt(memory, 10)) //nolint:noctx // it outlives this call, and is killed by hand
	p.command.Env, p.command.Dir = []string{}, "/"
	p.command.Stderr = &p.said
	p.command.SysProcAttr = attributes()

	if err := p.launch(); err != nil {
		return nil, fmt.Errorf("%w: start a process for it: %w", ErrUnavailable, err)
	}

	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()

	stop := context.AfterFunc(ctx, p.kill)
	kind, reason, err := ReadFrame(p.from)

	if !stop() {
		p.end()

		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, ctx.Err()
		}

		return nil, fmt.Errorf("%w: a process for it was not ready within %s", ErrUnavailable, startTime)
	}

	if err != nil || kind != KindReady {
		p.end()

		return nil, fmt.Errorf("%w: a process for it ended at its start (%s)", ErrUnavailable, p.command.ProcessState)
	}

	p.unfiltered = string(reason)

	if p.base, err = residentMemory(p.command.Process.Pid); err != nil {
		p.end()

		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}

	return p, nil
}

// launch starts the process with pipes. Both ends of them are this program's to
// close: exec.Cmd would drop an answer that is there when the process ends.
func (p *process) launch() error {
	stdin, to, err := os.Pipe()
	if err != nil {
		return err
	}

	from, stdout, err := os.Pipe()
	if err != nil {
		return errors.Join(err, stdin.Close(), to.Close())
	}

	p.command.Stdin, p.command.Stdout, p.to, p.from = stdin, stdout, to, from
	started := make(chan error, 1)

	go func() {
		// The kernel ends the worker when the thread ends that has started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()

		err := p.command.Start()
		started <- errors.Join(err, stdin.Close(), stdout.Close())

		if err == nil {
			_ = p.command.Wait() // how it ended is in its ProcessState
		}

		close(p.exited)
	}()

	if err := <-started; err != nil {
		p.end()

		return err
	}

	return nil
}

func (p *process) kill() {
	if p.command.Process != nil {
		_ = p.command.Process.Kill() // it may be gone already
	}
}

// end kills the process and waits until it is gone.
func (p *process) end() {
	p.kill()
	<-p.exited
	_ = p.to.Close()
	_ = p.from.Close()
}

// watch looks at how much the process has in memory, and kills it if that is more than it may have on top of what it had when it
// was ready. The kernel's own bounds (see package worker) let one large value pass that is up to one step of Go's heap
// beyond. The function that it returns ends the watch and reports whether it was too much.
func (p *process) watch(memory int64) (end func() (tooMuch bool)) {
	ended, result := make(chan struct{}), make(chan bool, 1)

	look := func() bool {
		// Another process may have the ID of one that is gone.
		resident, err := residentMemory(p.command.Process.Pid)
		if err != nil || resident <= p.base+memory || p.gone() {
			return false
		}

		p.kill()

		return true
	}

	go func() {
		ticker := time.NewTicker(watchInterval)
		defer ticker.Stop()

		for {
			select {
			case <-ended:
				result <- look()

				return
			case <-ticker.C:
				if look() {
					result <- true

					return
				}
			}
		}
	}()

	return func() bool {
		close(ended)

		return <-result
	}
}

// gone reports whether the process has ended.
func (p *process) gone() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Lookup answers a question of a template.
type Lookup func(ctx context.Context, question Question) Reply

// printed is what a worker says of a chart: the contents of its last two frames.
type printed struct{ answer, text []byte }

// render renders one chart. An error but *Failure leaves the process in no state
// to be used again.
func (p *process) render(ctx context.Context, job, archive []byte, lookup Lookup) (said printed, err error) {
	if err := errors.Join(WriteFrame(p.to, KindJob, job), WriteFrame(p.to, KindArchive, archive)); err != nil {
		return printed{}, err
	}

	for {
		kind, content, err := ReadFrame(p.from)
		if err != nil {
			return printed{}, err
		}

		switch kind {
		case KindQuestion:
			if err := p.answer(ctx, content, lookup); err != nil {
				return printed{}, err
			}
		case KindFailure:
			return printed{}, chartFailure(parseFailure(content))
		case KindAnswer:
			text, err := p.expect(KindText)

			return printed{content, text}, err
		default:
			return printed{}, errConfused
		}
	}
}

// tail keeps the beginning of what a process says, where Go names the reason of a
// crash, and takes the rest.
type tail struct{ text []byte }

const maxSaid = 4 << 10

// Write implements io.Writer.
func (t *tail) Write(said []byte) (int, error) {
	t.text = append(t.text, said[:min(len(said), maxSaid-len(t.text))]...)

	return len(said), nil
}

// signalled is the signal that has ended the process; 0 if none has.
func (p *process) signalled() syscall.Signal {
	if status, ok := p.command.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return status.Signal()
	}

	return 0
}

var _ io.Writer = (*tail)(nil)
