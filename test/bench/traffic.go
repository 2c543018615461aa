package main

import (
	"context"
	"fmt"
	"time"
)

const (
	// trafficPause is the time between two changes of the status of one cluster in Omni.
	trafficPause = time.Minute
	// trafficRequested is a number of machines that no storm reports.
	trafficRequested = 700
	// memorySample is how often memory is read meanwhile.
	memorySample = 5 * time.Second
)

// traffic changes the status of every cluster in Omni once a minute, evenly spread, and reports whether memory grows.
func (b *bench) traffic(ctx context.Context) error {
	if _, err := b.waitIdle(ctx, 0); err != nil {
		return err
	}

	what := fmt.Sprintf("%d clusters change once in %s, for %s", b.size, trafficPause, b.settings.Traffic)
	begin := time.Now()
	held := map[string][]memory{}
	waitForProfiles := b.cpuProfiles(ctx, "traffic")

	defer waitForProfiles()

	if err := b.watchBusy(what, func() error { return b.changeInTurn(ctx, held) }); err != nil {
		return err
	}

	ours, err := writesInFile(b.file(ourAuditLog), controllerUser, begin)
	if err != nil {
		return err
	}

	b.results.add(trafficFigures(what, held)...)
	b.results.add(figure{
		Part: partTraffic, Name: what + ": writes to our API per second", Value: float64(total(ours)) / b.settings.Traffic.Seconds(), Unit: "writes", Note: list(ours),
	})

	return nil
}

// changeInTurn changes one cluster after the other until the time is over, and adds the memory of both programs to held.
func (b *bench) changeInTurn(ctx context.Context, held map[string][]memory) error {
	over := time.After(b.settings.Traffic)

	next := time.NewTicker(trafficPause / time.Duration(b.size))
	defer next.Stop()

	read := time.NewTicker(min(memorySample, b.settings.Traffic/4))
	defer read.Stop()

	for change := 0; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over:
			return nil
		case <-read.C:
			if err := b.addMemory(held); err != nil {
				return err
			}
		case <-next.C:
			i, turn := change%b.size, change/b.size
			if err := b.omnis.of(i).ReportRequested(fleetName(i), uint32(trafficRequested+turn%2)); err != nil {
				return err
			}

			change++
		}
	}
}

// addMemory reads the memory of both of our programs.
func (b *bench) addMemory(held map[string][]memory) error {
	for _, name := range ourPrograms() {
		now, err := memoryOf(b.stack.ProcessIDs()[name])
		if err != nil {
			return err
		}

		held[name] = append(held[name], now)
	}

	return nil
}

// trafficFigures are the largest anonymous memory of each program in the first and in the last quarter of the samples.
func trafficFigures(what string, held map[string][]memory) []figure {
	var figures []figure

	for _, name := range ourPrograms() {
		samples := held[name]
		quarter := (len(samples) + 3) / 4
		first, last := largestAnonymous(samples[:quarter]), largestAnonymous(samples[len(samples)-quarter:])

		figures = append(figures,
			figure{Part: partTraffic, Name: anonymousName(memoryName(name, what) + ", the first quarter"), Value: float64(first) / mebibyte, Unit: "MiB"},
			figure{Part: partTraffic, Name: anonymousName(memoryName(name, what) + ", the last quarter"), Value: float64(last) / mebibyte, Unit: "MiB"},
			figure{Part: partTraffic, Name: memoryName(name, what) + ": growth", Value: float64(last) / float64(max(first, 1)), Unit: "of the first quarter", Aim: below(1.1)},
		)
	}

	return figures
}

func largestAnonymous(samples []memory) uint64 {
	largest := uint64(0)
	for _, sample := range samples {
		largest = max(largest, sample.anonymous())
	}

	return largest
}
