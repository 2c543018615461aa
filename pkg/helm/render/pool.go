// Package render has the charts of others read and rendered in worker processes, and
// the indexes of their repositories and their provenance files parsed there.
//
// A chart is a program: its templates can recurse, loop and print without end, and
// a Go process cannot bound what a part of it takes. So a Pool runs a few children
// of the program itself (package worker), each with a bound on its memory and a
// deadline, and kills them. What dies of a chart is a worker.
//
// The two talk in frames over the standard streams. A worker gets one packed chart
// with its values at a time, or one of the other texts, and is used again for the next. It has no environment,
// no credentials and no way to open a file or a connection: what a template looks
// up in the workload cluster, it asks the parent for. Nothing that it says is
// trusted: frames are bounded, and the caller checks the text.
package render

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"

	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
)

// Defaults of Options.
const (
	DefaultWorkers = 2
	DefaultMemory  = 128 << 20
	DefaultTimeout = 30 * time.Second
	// DefaultIdle is how long a worker that has nothing to do stays.
	DefaultIdle = 30 * time.Second
)

// MinMemory is the least memory for charts, in bytes: with less, none renders.
const MinMemory = 64 << 20

// largeAnswer is from how many bytes on answers are decoded one at a time.
const largeAnswer = 1 << 20

// Options are the bounds of a Pool. The zero value means the defaults.
type Options struct {
	// Workers is how many charts, indexes and provenance files are worked on at the same time. One group
	// has all of them but one, if there are several.
	Workers int
	// Memory is how many bytes a worker may take on top of what the program takes by itself.
	Memory int64
	// Timeout bounds the work on one chart, lookups included, and on one index or provenance file. Waiting for a worker does not count.
	Timeout time.Duration
	// Idle is how long a worker that has nothing to do stays.
	Idle time.Duration
	// Log is told once, at V(1), if the kernel filters no system calls of workers.
	Log logr.Logger
	// Program is what is started with Command as its argument. Default: the program that runs.
	Program string
}

// Pool has charts rendered, and what repositories send read, by workers, which it starts
// when they are needed. It is
// safe for concurrent use. Its workers end with the process at the latest.
type Pool struct {
	options Options
	limiter *limiter.Limiter[string] // by group
	// accepting has the one slot for a large answer that is decoded.
	accepting *limiter.Limiter[struct{}]

	unfiltered sync.Once // was said

	mu   sync.Mutex
	idle []*process // the one that was used last is the last
}

// New makes a pool. No process is started yet.
func New(options Options) *Pool {
	options.Workers = cmp.Or(options.Workers, DefaultWorkers)
	options.Memory = cmp.Or(options.Memory, DefaultMemory)
	options.Timeout = cmp.Or(options.Timeout, DefaultTimeout)
	options.Idle = cmp.Or(options.Idle, DefaultIdle)
	options.Program = cmp.Or(options.Program, "/proc/self/exe")

	workers := int64(max(1, options.Workers))

	return &Pool{
		options:   options,
		limiter:   limiter.New(limiter.Limits[string]{PerKey: max(1, workers-1), Total: workers}),
		accepting: limiter.New(limiter.Limits[struct{}]{Total: 1}),
	}
}

// Render has one packed chart rendered, when a worker is free. It returns the
// answer and the text of the files. Errors are *Failure, *RefusedError, that of ctx,
// and others that say nothing about the chart, which wrap ErrUnavailable if no worker
// could be had.
func (p *Pool) Render(ctx context.Context, group string, job Job, archive []byte, lookup Lookup) (answer *Answer, files map[string]string, err error) {
	text, err := json.Marshal(job)
	if err != nil {
		return nil, nil, fmt.Errorf("write what is rendered: %w", err)
	}

	if len(text) > maxRequest || len(archive) > maxRequest {
		return nil, nil, refused("it has more than %d MiB with its values", maxRequest>>20)
	}

	var said printed

	err = p.do(ctx, group, &rendering, func(ctx context.Context, worker *process) (err error) {
		said, err = worker.render(ctx, text, archive, lookup)

		return err
	}, func() (err error) {
		answer, files, err = p.accept(ctx, job, said)

		return err
	})
	if err != nil {
		return nil, nil, err
	}

	return answer, files, nil
}

// accept decodes an answer and has it admitted: one large answer at a time.
func (p *Pool) accept(ctx context.Context, job Job, said printed) (*Answer, map[string]string, error) {
	if len(said.answer)+len(said.text) > largeAnswer {
		release, err := p.accepting.Acquire(ctx, struct{}{}, 1)
		if err != nil {
			return nil, nil, err
		}
		defer release()
	}

	answer, files, err := said.decode()
	if err != nil {
		return nil, nil, err
	}

	if job.Admit != nil {
		err = job.Admit(answer, files)
	}

	return answer, files, err
}

// Explain returns Helm's own words about a rendered text that cannot be parsed: a
// *Failure. Other errors are as those of Render; nil means that Helm takes it.
func (p *Pool) Explain(ctx context.Context, group, name, text string) error {
	_, _, err := p.Render(ctx, group, Job{Explain: name, Values: json.RawMessage("{}")}, []byte(text), nil)

	return err
}

// do has work done, when a worker is free. The worker is kept unless the work fails with
// anything but *Failure. What comes then is done before another may take the place; it may be nil.
func (p *Pool) do(ctx context.Context, group string, what *work, talk func(context.Context, *process) error, then func() error) error {
	release, err := p.limiter.Acquire(ctx, group, 1)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}

	defer release()

	if err = p.tryWorkers(ctx, what, talk); err == nil && then != nil {
		err = then()
	}

	// What says something that makes no sense may go on with it.
	if errors.Is(err, errConfused) {
		p.Close()
	}

	return what.named(err)
}

// endTime is how long a worker that has closed its pipes may take to end.
const endTime = 5 * time.Second

func (p *Pool) tryWorkers(ctx context.Context, what *work, talk func(context.Context, *process) error) error {
	for {
		worker, err := p.take(ctx, what.first)
		if err != nil {
			return err
		}

		used := worker.used
		worker.used = true

		err = p.attempt(ctx, worker, what, talk)

		var failure *Failure
		if err == nil || errors.As(err, &failure) {
			p.put(worker)

			return err
		}

		worker.end()

		// What a chart before it left behind in the worker must not be this one's fault. Nothing was rendered.
		var death *deathError
		if !errors.As(err, &death) {
			return err
		}

		if !used {
			return death.cause
		}
	}
}

// deathError is a worker that ended by itself.
type deathError struct{ cause error }

// Error implements error.
func (e *deathError) Error() string { return e.cause.Error() }

// attempt does work with one worker, which is killed when the time is over or when it takes too much memory.
func (p *Pool) attempt(ctx context.Context, worker *process, what *work, talk func(context.Context, *process) error) error {
	limited, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()

	stop := context.AfterFunc(limited, worker.kill)
	endWatch := worker.watch(p.options.Memory)
	err := talk(limited, worker)

	if endWatch() {
		stop()

		return p.tookTooMuch(what)
	}

	if stop() {
		return p.explain(worker, what, err)
	}

	if ctx.Err() != nil {
		return ctx.Err()
	}

	return what.tooSlow(p.options.Timeout)
}

// explain says why a worker ended, if it did.
func (p *Pool) explain(worker *process, what *work, err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.EPIPE) {
		return err
	}

	// It has closed its end of a pipe, so it is about to end.
	select {
	case <-worker.exited:
	case <-time.After(endTime):
		return errConfused
	}

	said := string(worker.said.text)

	switch {
	case strings.Contains(said, "stack overflow"), strings.Contains(said, "stack exceeds"):
		return &deathError{&RefusedError{Why: what.deep}}
	case slices.ContainsFunc(noMemory(), func(words string) bool { return strings.Contains(said, words) }):
		return p.tookTooMuch(what)
	case worker.signalled() == syscall.SIGKILL:
		return &deathError{fmt.Errorf("%w: somebody killed it; if it was the kernel, for want of memory, raise the memory limit of omni-controller", errDied)}
	default:
		return &deathError{fmt.Errorf("%w (%s)", errDied, worker.command.ProcessState)}
	}
}

// tookTooMuch says that a worker ended because it took more memory than it may.
func (p *Pool) tookTooMuch(what *work) error {
	return &deathError{refused(what.large, p.options.Memory>>20)}
}

// noMemory are the words with which a Go program ends that gets no more memory, or
// none for a thread.
func noMemory() []string {
	return []string{"out of memory", "cannot allocate", "cannot map", "errno=12", "create new OS thread", "pthread_create failed"}
}

// take returns a worker: an idle one, or a new one. There are never more workers than slots,
// so a new one takes the place of an idle one.
func (p *Pool) take(ctx context.Context, unused bool) (*process, error) {
	for {
		worker := p.pop()
		if worker == nil {
			return p.start(ctx)
		}

		if stopped := worker.retire.Stop(); stopped && !unused && !worker.gone() {
			return worker, nil
		}

		worker.end()

		if unused {
			return p.start(ctx)
		}
	}
}

func (p *Pool) start(ctx context.Context) (*process, error) {
	worker, err := start(ctx, p.options.Program, p.options.Memory)
	if err == nil && worker.unfiltered != "" {
		p.unfiltered.Do(func() {
			p.options.Log.V(1).Info("The processes that render charts are bounded, but the kernel does not filter their system calls", "reason", worker.unfiltered)
		})
	}

	return worker, err
}

func (p *Pool) pop() *process {
	p.mu.Lock()
	defer p.mu.Unlock()

	if len(p.idle) == 0 {
		return nil
	}

	last := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]

	return last
}

// put keeps a worker for a while.
func (p *Pool) put(worker *process) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.idle = append(p.idle, worker)
	worker.retire = time.AfterFunc(p.options.Idle, func() { p.drop(worker) })
}

// drop ends a worker that nobody has taken meanwhile.
func (p *Pool) drop(worker *process) {
	p.mu.Lock()

	for i, one := range p.idle {
		if one == worker {
			p.idle = append(p.idle[:i], p.idle[i+1:]...)

			defer worker.end()

			break
		}
	}

	p.mu.Unlock()
}

// Close ends the idle workers. What renders goes on.
func (p *Pool) Close() {
	for worker := p.pop(); worker != nil; worker = p.pop() {
		worker.retire.Stop()
		worker.end()
	}
}
