package main

import (
	"context"
	"fmt"
	"time"
)

const mebibyte = 1 << 20

// memoryOfFleet reads the memory as the load left it, and after a rest. The aim is about the
// largest fleet at rest.
func (b *bench) memoryOfFleet(ctx context.Context) error {
	if err := b.readMemory("loaded", fmt.Sprintf("%d clusters, at once", b.size), nil); err != nil {
		return err
	}

	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(b.settings.Settle):
	}

	var bound *aim
	if b.size == b.settings.Many {
		bound = below(200)
	}

	if err := b.readMemory("settled", atRest(b.size, b.settings.Settle), bound); err != nil {
		return err
	}

	return b.heapProfiles(ctx, fmt.Sprintf("%d-clusters", b.size))
}

// ourPrograms are those whose memory is reported.
func ourPrograms() []string { return []string{"omni-apiserver", "omni-controller"} }

// readMemory reports the memory of both of our programs, for benchstat in a state of one word.
func (b *bench) readMemory(state, when string, bound *aim) error {
	for _, name := range ourPrograms() {
		now, err := memoryOf(b.stack.ProcessIDs()[name])
		if err != nil {
			return err
		}

		b.results.add(memoryFigures("f", memoryName(name, when), now, bound)...)
		b.results.lines = append(b.results.lines, goLine{
			name: fmt.Sprintf("Memory/process=%s/clusters=%d/state=%s", name, b.size, state), count: 1, per: 1,
			extra: []metric{{float64(now.resident), "resident-bytes"}, {float64(now.anonymous()), "anonymous-bytes"}},
		})
	}

	return nil
}

// memoryFigures are the resident memory of a process, which may have an aim, and its anonymous part.
func memoryFigures(part, name string, now memory, bound *aim) []figure {
	return []figure{
		{
			Part: part, Name: name, Value: float64(now.resident) / mebibyte, Unit: "MiB", Aim: bound,
			Note: fmt.Sprintf("of which %d MiB are files; peak so far %d MiB", now.file/mebibyte, now.peak/mebibyte),
		},
		{Part: part, Name: anonymousName(name), Value: float64(now.anonymous()) / mebibyte, Unit: "MiB"},
	}
}

// memoryName names the memory of a process at a time.
func memoryName(process, when string) string { return process + " with " + when }

// atRest names the time after which the memory of a fleet has settled.
func atRest(clusters int, rest time.Duration) string {
	if clusters == 0 {
		return "no clusters"
	}

	return fmt.Sprintf("%d clusters, after %s of rest", clusters, rest)
}

// anonymousName names the anonymous part of a memory.
func anonymousName(name string) string { return name + ", anonymous" }
