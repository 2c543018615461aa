package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// runTimeout bounds a whole run. A full one takes about a quarter of an hour on two idle cores.
const runTimeout = 90 * time.Minute

func main() {
	if err := run(); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	s, err := parseSettings(os.Args[1:])
	if err != nil {
		return err
	}

	if s.plot != "" {
		return plotFiles(s.plot, s.inputs)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()

	r := &results{Date: time.Now(), Commit: commit(ctx), Settings: s}
	err = measure(ctx, s, r)

	// What was measured before an error is worth showing.
	fmt.Printf("\n%s\n%s", r.markdown(), r.goBench())

	if s.out != "" {
		err = errors.Join(err, writePlots(s.out, r))
	}

	return err
}

func measure(ctx context.Context, s settings, r *results) (err error) {
	b, err := startBench(ctx, s, r)
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, b.close()) }()

	for _, step := range b.steps() {
		if !step.wanted {
			continue
		}

		b.say("%s", step.says)

		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.says, err)
		}

		if s.out != "" {
			if err := r.write(s.out); err != nil {
				return err
			}
		}
	}

	return nil
}

// step is a stretch of the run. The order matters: memory is read before part (a) fills the
// stores, and the fleet grows.
type step struct {
	says   string
	wanted bool
	do     func(context.Context) error
}

func (b *bench) steps() []step {
	s := b.settings
	small, large := strings.ContainsAny(s.Parts, smallParts), strings.ContainsAny(s.Parts, largeParts)

	return []step{
		{"memory without clusters", s.runs(partMemory), func(context.Context) error { return b.readMemory("settled", atRest(0, s.Settle), nil) }},
		{"a cluster whose changes are timed", s.runs(partLatency), b.startProbe},
		{"latency without other clusters", s.runs(partLatency), func(ctx context.Context) error { return b.latencies(ctx, 0) }},
		{fmt.Sprintf("%d new clusters", s.Few), small, func(ctx context.Context) error { return b.growTo(ctx, s.Few) }},
		{"memory, at once and settled", s.runs(partMemory), b.memoryOfFleet},
		{"requests of the idle fleet", s.runs(partIdle), b.idleRequests},
		{fmt.Sprintf("latency with %d other clusters", s.Few), s.runs(partLatency), func(ctx context.Context) error { return b.latencies(ctx, s.Few) }},
		{fmt.Sprintf("%d clusters", s.Many), large, func(ctx context.Context) error { return b.growTo(ctx, s.Many) }},
		{"memory, at once and settled", s.runs(partMemory), b.memoryOfFleet},
		{"requests of the idle fleet", s.runs(partIdle), b.idleRequests},
		{"restart of omni-controller", s.runs(partRestarts), b.restartController},
		{"restart of omni-apiserver", s.runs(partRestarts), b.restartAPIServer},
		{"status traffic", s.runs(partTraffic), b.traffic},
		{"clusters that wait for their turn", s.runs(partRollout), b.hold},
		{"a rollout", s.runs(partRollout), b.rollOut},
		{"our API against a CRD", s.runs(partAPIs), b.compareAPIs},
		{fmt.Sprintf("omni-apiserver with %d objects", s.Stored), s.runs(partObjects), b.memoryOfObjects},
		{"Helm releases next to Flux", s.runs(partReleases), b.compareReleases},
		{"a storm", s.runs(partStorm), b.storms}, // the last one: what hangs stays
	}
}

// commit names the commit that is measured, with a + if files differ from it; empty if git does
// not say.
func commit(ctx context.Context) string {
	head, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return ""
	}

	name := strings.TrimSpace(string(head))
	if exec.CommandContext(ctx, "git", "diff", "--quiet", "HEAD", "--", "cmd", "pkg", "go.mod").Run() != nil {
		name += "+"
	}

	return name
}
