package main

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

const (
	// quiet is how long a controller's queues have to be empty for it to count as idle.
	quiet = 2 * time.Second
	// idleSample is the pause between two looks at them: its metrics cost a large controller time.
	idleSample = 250 * time.Millisecond
)

// load is what a controller's metrics say of its work.
type load struct {
	queued, done float64
}

// parseLoad reads the metrics of a controller: objects that wait in queues, and looks at objects
// that have ended so far.
func parseLoad(metrics string) (load, error) {
	var l load

	lines := bufio.NewScanner(strings.NewReader(metrics))
	lines.Buffer(nil, len(metrics)+1)

	for lines.Scan() {
		name, _, _ := strings.Cut(lines.Text(), "{")
		if name != "workqueue_depth" && name != "controller_runtime_reconcile_total" {
			continue
		}

		fields := strings.Fields(lines.Text())

		value, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil {
			return load{}, fmt.Errorf("read metrics: %w", err)
		}

		if name == "workqueue_depth" {
			l.queued += value
		} else {
			l.done += value
		}
	}

	return l, lines.Err()
}

// waitIdle waits until the controller has looked at something at least so often since its start
// and its queues stay empty. It returns when they became empty for good.
func (b *bench) waitIdle(ctx context.Context, runs int) (time.Time, error) {
	var since time.Time

	err := env.Eventually(ctx, stepTimeout, "omni-controller to be idle", func(ctx context.Context) error {
		at := time.Now()

		metrics, err := b.stack.Controller.Metrics(ctx)
		if err != nil {
			return err
		}

		now, err := parseLoad(metrics)
		if err != nil {
			return err
		}

		time.Sleep(idleSample)

		if now.queued > 0 || now.done < float64(runs) {
			since = time.Time{}

			return fmt.Errorf("%v objects wait after %v runs", now.queued, now.done)
		}

		if since.IsZero() {
			since = at
		}

		if time.Since(since) < quiet {
			return fmt.Errorf("idle for %s only", time.Since(since))
		}

		return nil
	})

	return since, err
}

// idleRequests counts what the controller asks Omni while nothing happens.
func (b *bench) idleRequests(ctx context.Context) error {
	if _, err := b.waitIdle(ctx, 0); err != nil {
		return err
	}

	what := fmt.Sprintf("%d idle clusters", b.size)

	return b.watchBusy(what, func() error {
		b.omnis.forgetRequests()

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(b.settings.IdleWindow):
		}

		requests, writes := b.omnis.requests(), len(b.omnis.writes())
		rate := float64(requests) / b.settings.IdleWindow.Seconds()

		b.results.add(figure{
			Part: partIdle, Name: what, Value: rate, Unit: "requests/s", Aim: below(1),
			Note: fmt.Sprintf("%d requests in %s, %d of them writes", requests, b.settings.IdleWindow, writes),
		})
		b.results.lines = append(b.results.lines, goLine{
			name: fmt.Sprintf("Idle/clusters=%d", b.size), count: 1, per: b.settings.IdleWindow, extra: []metric{{rate, "requests/s"}},
		})

		return nil
	})
}
