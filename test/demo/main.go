// Command demo shows the whole path from kubectl to Omni and into a workload cluster on one machine:
// it starts a management cluster, omni-apiserver, omni-controller, a simulated Omni and the Kubernetes
// of one cluster, applies the examples, and says what happens. With --up it leaves the stack running
// until it is interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// demoTimeout bounds the demonstration, without the building of programs before it.
const demoTimeout = 5 * time.Minute

func main() {
	up := flag.Bool("up", false, "leave the stack running until Ctrl-C")
	metrics := flag.String("metrics", "", "write what both programs expose meanwhile into this file")
	flag.Parse()

	// SIGHUP comes when the terminal is closed: the directory of the stack has to go then too.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()

	if err := run(ctx, *up, *metrics); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(exitCode(err))
	}
}

// errInterrupted stands for whatever a step says when the user ends it.
var errInterrupted = errors.New("interrupted; everything is stopped and removed")

// explain keeps an error, unless it only follows from the interrupt.
func explain(ctx context.Context, step string, err error) error {
	if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errInterrupted
	}

	return fmt.Errorf("%s: %w", strings.TrimSuffix(step, "."), err)
}

// exitCode is the shell's own for an interrupt, and 1 for everything else.
func exitCode(err error) int {
	if errors.Is(err, errInterrupted) {
		return 128 + int(syscall.SIGINT)
	}

	return 1
}

func run(ctx context.Context, up bool, metrics string) (err error) {
	start := time.Now()

	d, err := startDemo(ctx)
	if err != nil {
		return explain(ctx, "start", err)
	}
	defer func() { err = errors.Join(err, d.close()) }()

	d.say("Everything runs after %s. Now as a user, with kubectl in the namespace %s:",
		time.Since(start).Round(100*time.Millisecond), namespace)

	if up {
		return d.holdOpen(ctx)
	}

	ctx, cancel := context.WithTimeout(ctx, demoTimeout)
	defer cancel()

	if metrics != "" {
		recorded, recordErr := d.record(ctx, metrics)
		if recordErr != nil {
			return explain(ctx, "record the metrics", recordErr)
		}

		defer func() { err = errors.Join(err, recorded.write()) }()
	}

	for _, act := range d.acts() {
		d.say("")
		d.say("# %s", act.says)

		if err := act.plays(ctx); err != nil {
			return explain(ctx, act.says, err)
		}
	}

	d.say("")
	d.say("That is all. The stack stops now and leaves nothing behind.")

	return nil
}
