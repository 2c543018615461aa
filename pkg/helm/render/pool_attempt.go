package render

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"time"
)

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
