package env

import (
	"context"
	"errors"
	"strings"
	"time"
)

// componentTimeout bounds the start of one of this repository's programs until it works.
// More than twice what kube-apiserver pauses at most (30 s and 60 s, from kube-aggregator 0.37) between two looks
// at an API that was away for long.
const componentTimeout = 5 * time.Minute

// component is a program that tests stop, kill and start again.
type component struct {
	hub     *Hub
	spec    processSpec
	current *process
	ready   func(context.Context) error // nil when the program does its work
}

// launch starts the program and waits until it works.
func (c *component) launch(ctx context.Context) error {
	started, err := c.hub.start(c.spec)
	if err != nil {
		return err
	}

	c.current = started

	return c.current.eventuallyAlive(ctx, componentTimeout, c.spec.name+" to work", c.ready)
}

// BinaryPath is the program's file, for what else it can do than run for ever.
func (c *component) BinaryPath() string { return c.spec.binary }

// Stop ends the program in an orderly way (SIGTERM) and waits for it. It is an error if it had
// ended before, had to be killed, or, being ours, ended with a status of failure.
func (c *component) Stop() error {
	c.hub.forget(c.current)

	return c.current.stop(stopGrace)
}

// Kill ends the program at once (SIGKILL), as a power cut would, and waits for it.
func (c *component) Kill() {
	c.current.kill()
	c.hub.forget(c.current)
}

// Restart stops the program, if it runs, and starts it again with the same ports, flags and
// data; then it waits until it works.
func (c *component) Restart(ctx context.Context) error {
	var stopped error
	if !c.current.hasExited() {
		stopped = c.Stop()
	}

	c.hub.forget(c.current)

	return errors.Join(stopped, c.launch(ctx))
}

// Running reports whether the program runs.
func (c *component) Running() bool { return !c.current.hasExited() }

// Crashed returns an error with the end of the log if the program has ended without being asked.
func (c *component) Crashed() error {
	if p := c.current; p.hasExited() && !p.killed.Load() {
		return p.crash()
	}

	return nil
}

// KilledForMemory is how many processes of the program the kernel has killed since its start, because they needed more
// than the limit that the program was started with. It is 0 without a limit.
func (c *component) KilledForMemory() int {
	if c.current.group == nil {
		return 0
	}

	return c.current.group.kills()
}

// ProcessID returns the process ID of the program's latest start.
func (c *component) ProcessID() int { return c.current.pid }

// LogPath returns the log file; it holds the output of all starts of the program.
func (c *component) LogPath() string { return c.hub.LogPath(c.spec.name) }

// Args returns the flags that the program was started with, on one line, for people.
func (c *component) Args() string { return strings.Join(c.spec.args, " ") }
