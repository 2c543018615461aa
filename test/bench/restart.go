package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// controllerUser is who the controller is at the API servers.
const controllerUser = "system:serviceaccount:" + env.SystemNamespace + ":omni-controller"

// restartController measures how long a new controller needs until it has nothing to do, and what
// it writes.
func (b *bench) restartController(ctx context.Context) error {
	return b.restart(ctx, "omni-controller", b.clusterCount(0)*(machinesPerCluster+1), b.stack.Controller.Restart)
}

// restartAPIServer does the same for the API server, with the controller still running.
func (b *bench) restartAPIServer(ctx context.Context) error {
	return b.restart(ctx, "omni-apiserver", 0, b.stack.OmniAPIServer.Restart)
}

func (b *bench) restart(ctx context.Context, name string, runs int, restart func(context.Context) error) error {
	if _, err := b.waitIdle(ctx, 0); err != nil {
		return err
	}

	b.omnis.forgetRequests()

	var begin, served, idle time.Time

	err := b.watchBusy("restart of "+name, func() (err error) {
		begin = time.Now()

		if err := restart(ctx); err != nil {
			return err
		}

		served = time.Now()
		idle, err = b.waitIdle(ctx, runs)

		return err
	})
	if err != nil {
		return err
	}

	return b.reportRestart(name, begin, served, idle)
}

func (b *bench) reportRestart(name string, begin, served, idle time.Time) error {
	what := fmt.Sprintf("restart of %s with %d clusters: ", name, b.size)

	note := "with its watches back"
	if name == "omni-controller" {
		note = "every object looked at"
	}

	ours, err := writesInFile(b.file(ourAuditLog), controllerUser, begin)
	if err != nil {
		return err
	}

	hubs, err := b.hubWrites(begin)
	if err != nil {
		return err
	}

	b.results.add(
		figure{Part: partRestarts, Name: what + "works again", Value: served.Sub(begin).Seconds(), Unit: "s", Note: "stop and start"},
		figure{Part: partRestarts, Name: what + "controller idle", Value: idle.Sub(begin).Seconds(), Unit: "s", Note: note},
		figure{Part: partRestarts, Name: what + "writes to our API", Value: float64(total(ours)), Unit: "writes", Aim: exactly(0), Note: list(ours)},
		figure{Part: partRestarts, Name: what + "writes to Omni", Value: float64(len(b.omnis.writes())), Unit: "writes", Aim: exactly(0), Note: fmt.Sprintf("%d requests", b.omnis.requests())},
		figure{Part: partRestarts, Name: what + "writes to the hub", Value: float64(total(hubs)), Unit: "writes", Note: list(hubs)},
	)
	b.results.lines = append(b.results.lines, goLine{
		name: fmt.Sprintf("Restart/process=%s/clusters=%d", name, b.size), count: 1, per: idle.Sub(begin),
		extra: []metric{{float64(total(ours)), "api-writes"}, {float64(len(b.omnis.writes())), "omni-writes"}},
	})

	return nil
}

// hubWrites counts what the controller wrote to the hub itself: events. What kube-apiserver passed
// on to our API server is in our log as well, and left out.
func (b *bench) hubWrites(since time.Time) (map[string]int, error) {
	counts, err := writesInFile(b.file(hubAuditLog), controllerUser, since)
	for what := range counts {
		if strings.Contains(what, " omni") {
			delete(counts, what)
		}
	}

	return counts, err
}

// list shows counts in the order of their names.
func list(counts map[string]int) string {
	parts := make([]string, 0, len(counts))
	for what, count := range counts {
		parts = append(parts, fmt.Sprintf("%d %s", count, what))
	}

	slices.Sort(parts)

	return strings.Join(parts, ", ")
}
