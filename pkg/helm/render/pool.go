package render

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/limiter"
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
