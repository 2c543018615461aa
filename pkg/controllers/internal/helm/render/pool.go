package render

import (
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

	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/places"
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

// endTime is how long a worker that has closed its pipes may take to end.
const endTime = 5 * time.Second

// Options are the bounds of a Pool. The zero value means the defaults.
type Options struct {
	// Workers is how many charts are rendered at the same time. One group has all of them but one, if
	// there are several.
	Workers int
	// Memory is how many bytes a worker may take on top of what the program takes by itself.
	Memory int64
	// Timeout bounds the work on one chart, lookups included. Waiting for a worker does not count.
	Timeout time.Duration
	// Idle is how long a worker that has nothing to do stays.
	Idle time.Duration
	// Program is what is started with Command as its argument. Default: the program that runs.
	Program string
}

// Pool has charts rendered by workers, which it starts when they are needed. It is
// safe for concurrent use. Its workers end with the process at the latest.
type Pool struct {
	options Options
	places  *places.Places

	mu   sync.Mutex
	idle []*process // the one that was used last is the last
}

// New makes a pool. No process is started yet.
func New(options Options) *Pool {
	defaultTo(&options.Workers, DefaultWorkers)
	defaultTo(&options.Memory, DefaultMemory)
	defaultTo(&options.Timeout, DefaultTimeout)
	defaultTo(&options.Idle, DefaultIdle)
	defaultTo(&options.Program, "/proc/self/exe")

	return &Pool{options: options, places: places.New(options.Workers, max(1, options.Workers-1))}
}

func defaultTo[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
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

	if !p.places.Run(ctx, group, func() { answer, files, err = p.render(ctx, text, archive, lookup) }) {
		return nil, nil, fmt.Errorf("wait for a process that renders the chart: %w", ctx.Err())
	}

	return answer, files, err
}

// Explain returns Helm's own words about a rendered text that cannot be parsed: a
// *Failure. Other errors are as those of Render; nil means that Helm takes it.
func (p *Pool) Explain(ctx context.Context, group, name, text string) error {
	_, _, err := p.Render(ctx, group, Job{Explain: name, Values: json.RawMessage("{}")}, []byte(text), nil)

	return err
}

func (p *Pool) render(ctx context.Context, job, archive []byte, lookup Lookup) (*Answer, map[string]string, error) {
	for {
		worker, err := p.take(ctx)
		if err != nil {
			return nil, nil, err
		}

		used := worker.used
		worker.used = true

		answer, files, err := p.attempt(ctx, worker, job, archive, lookup)

		var failure *Failure
		if err == nil || errors.As(err, &failure) {
			p.put(worker)

			return answer, files, err
		}

		worker.end()

		// What a chart before it left behind in the worker must not be this one's fault. Nothing was rendered.
		var death *deathError
		if !errors.As(err, &death) {
			return nil, nil, err
		}

		if !used {
			return nil, nil, death.cause
		}
	}
}

// deathError is a worker that ended by itself.
type deathError struct{ cause error }

// Error implements error.
func (e *deathError) Error() string { return e.cause.Error() }

// attempt renders a chart with one worker, which is killed when the time is over.
func (p *Pool) attempt(ctx context.Context, worker *process, job, archive []byte, lookup Lookup) (*Answer, map[string]string, error) {
	limited, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()

	stop := context.AfterFunc(limited, worker.kill)
	answer, files, err := worker.render(limited, job, archive, lookup)

	if stop() {
		return answer, files, p.explain(worker, err)
	}

	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}

	return nil, nil, refused("rendering it did not end within %s: a template may loop without end, or the cluster answers its lookups slowly; "+
		"correct the chart or its values, or raise --render-timeout of omni-controller", p.options.Timeout)
}

// explain says why a worker ended, if it did.
func (p *Pool) explain(worker *process, err error) error {
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
		return &deathError{refused("a template calls itself, or prints a value that contains itself, without end; correct the chart or its values")}
	case slices.ContainsFunc(noMemory(), func(words string) bool { return strings.Contains(said, words) }):
		return &deathError{refused("rendering it takes more than %d MiB of memory; correct the chart or its values, or raise --render-memory of omni-controller",
			p.options.Memory>>20)}
	case worker.signalled() == syscall.SIGKILL:
		return &deathError{fmt.Errorf("%w: somebody killed it; if it was the kernel, for want of memory, raise the memory limit of omni-controller", errDied)}
	default:
		return &deathError{fmt.Errorf("%w (%s)", errDied, worker.command.ProcessState)}
	}
}

// noMemory are the words with which a Go program ends that gets no more memory, or
// none for a thread.
func noMemory() []string {
	return []string{"out of memory", "cannot allocate", "cannot map", "errno=12", "create new OS thread", "pthread_create failed"}
}

// take returns an idle worker, or a new one.
func (p *Pool) take(ctx context.Context) (*process, error) {
	for {
		worker := p.pop()
		if worker == nil {
			return start(ctx, p.options.Program, p.options.Memory)
		}

		if worker.retire.Stop() && !worker.gone() {
			return worker, nil
		}

		worker.end()
	}
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
