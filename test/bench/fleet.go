package main

import (
	"context"
	"fmt"
	"time"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// creators are how many clusters are applied at the same time.
const creators = 8

// growTo adds clusters until the fleet has this many, waits until they run and the controller has
// nothing to do, and reports how long it took.
func (b *bench) growTo(ctx context.Context, size int) error {
	first, added := b.size, size-b.size
	if added <= 0 {
		return nil
	}

	machines, err := b.omnis.addMachines(first, added)
	if err != nil {
		return err
	}

	// The simulator tells the controller of new machines; that is not part of it.
	if _, err := b.waitIdle(ctx, 0); err != nil {
		return err
	}

	b.omnis.forgetRequests()

	names := make([]string, added)
	begin := time.Now()

	var applied, idle time.Time

	err = b.watchBusy(growthBusy(added, first), func() error {
		if applied, err = b.applyClusters(ctx, first, names, machines); err != nil {
			return err
		}

		if err := b.waitReady(ctx, names); err != nil {
			return err
		}

		idle, err = b.waitIdle(ctx, 0)

		return err
	})
	if err != nil {
		return err
	}

	b.size = size

	return b.reportGrowth(names, first, begin, applied, idle)
}

// applyClusters applies the clusters first, first+1 ... and returns when the last was accepted.
func (b *bench) applyClusters(ctx context.Context, first int, names []string, machines [][machinesPerCluster]string) (time.Time, error) {
	err := inParallel(ctx, creators, len(names), func(ctx context.Context, _, i int) error {
		names[i] = fleetName(first + i)

		return b.applyCluster(ctx, names[i], b.omnis.connectionOf(first+i), machines[i])
	})

	return time.Now(), err
}

// applyCluster applies the four objects of a cluster.
func (b *bench) applyCluster(ctx context.Context, name, connection string, machines [machinesPerCluster]string) error {
	for _, o := range fleetCluster(name, connection, machines) {
		path := ourPath(fleetNamespace, o.resource) + "/" + o.name()
		if err := apply(b.admin, path, encode(o.object)).Do(ctx).Error(); err != nil {
			return fmt.Errorf("apply %s: %w", path, err)
		}
	}

	return nil
}

func (b *bench) waitReady(ctx context.Context, names []string) error {
	last := time.Now()

	return env.Eventually(ctx, stepTimeout+time.Duration(len(names))*clusterTimeout, fmt.Sprintf("%d clusters to run", len(names)), func(context.Context) error {
		synced, ready := b.clusters.counts()
		if ready >= b.clusterCount(len(names)) {
			return nil
		}

		if time.Since(last) > 10*time.Second {
			last = time.Now()

			b.say("  %d synced, %d ready", synced, ready)
		}

		return fmt.Errorf("%d are synced and %d ready", synced, ready)
	})
}

// clusterCount is how many clusters there are with so many new ones, the probe included.
func (b *bench) clusterCount(added int) int {
	count := b.size + added
	if b.settings.runs(partLatency) {
		count++
	}

	return count
}

// allSynced is the end of a growth that the plot shows.
const allSynced = "all shown as synced"

// growthName names how long it took from the first apply of new clusters to an event.
func growthName(added, first int, event string) string {
	if first > 0 {
		return fmt.Sprintf("%d more clusters, beside %d: %s", added, first, event)
	}

	return fmt.Sprintf("%d new clusters: %s", added, event)
}

// growthBusy names the processor time of new clusters.
func growthBusy(added, first int) string { return fmt.Sprintf("%d clusters after %d", added, first) }

func (b *bench) reportGrowth(names []string, first int, begin, applied, idle time.Time) error {
	synced, ready := b.clusters.lastOf(names)

	seconds := func(name string, at time.Time, note string) figure {
		return figure{Part: partGrowth, Name: growthName(len(names), first, name), Value: at.Sub(begin).Seconds(), Unit: "s", Note: note}
	}

	writes, last := b.writesToOmni()

	ours, err := writesInFile(b.file(ourAuditLog), controllerUser, begin)
	if err != nil {
		return err
	}

	b.results.add(
		seconds("all applied", applied, fmt.Sprintf("%d objects, %d at a time", len(names)*(machinesPerCluster+1), creators)),
		seconds("last write to Omni", last, fmt.Sprintf("%d writes", writes)),
		seconds(allSynced, synced, ""),
		seconds("all shown as ready", ready, "the simulated machines need about a second"),
		seconds("controller idle", idle, ""),
		figure{
			Part: partGrowth, Name: growthName(len(names), first, "writes to our API per cluster"), Value: float64(total(ours)) / float64(len(names)), Unit: "writes", Note: list(ours),
		},
	)
	b.results.lines = append(b.results.lines, goLine{
		name: fmt.Sprintf("NewClusters/clusters=%d/beside=%d", len(names), first), count: len(names),
		per: synced.Sub(begin) / time.Duration(len(names)), extra: []metric{{synced.Sub(begin).Seconds(), "s-synced"}, {float64(total(ours)), "api-writes"}},
	})

	return nil
}

// writesToOmni counts what the simulator has accepted since it was told to forget, and when the
// last came.
func (b *bench) writesToOmni() (int, time.Time) {
	var last time.Time

	writes := b.omnis.writes()
	for _, write := range writes {
		if write.Time.After(last) {
			last = write.Time
		}
	}

	return len(writes), last
}

// startProbe makes the cluster whose changes are timed.
func (b *bench) startProbe(ctx context.Context) error {
	machines, err := b.omnis.addMachines(0, 1)
	if err != nil {
		return err
	}

	if err := b.applyCluster(ctx, probeName, connectionName(0), machines[0]); err != nil {
		return err
	}

	if err := b.waitReady(ctx, nil); err != nil {
		return err
	}

	_, err = b.waitIdle(ctx, 0)

	return err
}
