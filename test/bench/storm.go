package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

const (
	// stormRequested is a number of machines that no cluster of the fleet has, and no sample of (b) reports.
	stormRequested = 500
	// hangingConnections are the connections to an Omni that answers nothing, beside that of the fleet.
	hangingConnections = 10
	// queueSample is how often the length of the controller's queues is read. A reading costs the controller a few
	// milliseconds for each thousand objects.
	queueSample = 2 * time.Second
)

// storms changes what Omni says of every cluster at once, and reports when each shows it: with one connection, and
// beside others that hang.
func (b *bench) storms(ctx context.Context) error {
	if err := b.storm(ctx, 0); err != nil {
		return err
	}

	hanging, err := b.addHangingConnections(ctx)
	if hanging != nil {
		defer hanging.Close()
	}

	if err != nil {
		return err
	}

	return b.storm(ctx, hangingConnections)
}

// storm makes one storm beside so many connections that hang.
func (b *bench) storm(ctx context.Context, hanging int) error {
	if _, err := b.waitIdle(ctx, 0); err != nil {
		return err
	}

	what := fmt.Sprintf("%d clusters change at once, %d connections hang", b.size, hanging)
	counting, stop := context.WithCancel(ctx)
	longest := b.longestQueue(counting)

	defer stop()

	var (
		taken samples
		idle  time.Time
	)

	begin := time.Now()
	waitForProfiles := b.cpuProfiles(ctx, fmt.Sprintf("storm-%d-hanging", hanging))

	defer waitForProfiles()

	if err := b.watchBusy(what, func() (err error) {
		if taken, err = b.changeAll(ctx, int32(stormRequested+hanging)); err != nil {
			return err
		}

		idle, err = b.waitIdle(ctx, 0)

		return err
	}); err != nil {
		return err
	}

	stop()

	ours, err := writesInFile(b.file(ourAuditLog), controllerUser, begin)
	if err != nil {
		return err
	}

	b.results.add(
		figure{Part: partStorm, Name: what + ": shown, p50", Value: taken.percentile(50).Seconds(), Unit: "s"},
		figure{Part: partStorm, Name: what + ": shown, p99", Value: taken.percentile(99).Seconds(), Unit: "s", Aim: below(2), Note: fmt.Sprintf("%d changes", len(taken))},
		figure{Part: partStorm, Name: what + ": controller idle", Value: idle.Sub(begin).Seconds(), Unit: "s"},
		figure{Part: partStorm, Name: what + ": longest queue", Value: <-longest, Unit: "objects", Note: "of all kinds together, read every " + queueSample.String()},
		figure{Part: partStorm, Name: what + ": writes to our API per cluster", Value: float64(total(ours)) / float64(b.size), Unit: "writes", Note: list(ours)},
	)
	b.results.lines = append(b.results.lines, goLine{
		name: fmt.Sprintf("Storm/clusters=%d/hanging=%d", b.size, hanging), count: len(taken), per: taken.percentile(50),
		extra: []metric{{float64(taken.percentile(99).Nanoseconds()), "p99-ns"}},
	})

	return nil
}

// changeAll changes the status of every cluster in Omni, and returns how long each took until the watch of a client showed
// it, from the change of that cluster on.
func (b *bench) changeAll(ctx context.Context, want int32) (samples, error) {
	var (
		mu    sync.Mutex
		taken samples
	)

	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()

	err := inParallel(ctx, b.size, b.size, func(ctx context.Context, _, i int) error {
		name, begin := fleetName(i), time.Now()
		if err := b.omnis.of(i).ReportRequested(name, uint32(want)); err != nil {
			return err
		}

		shown, err := b.clusters.waitRequested(ctx, name, want)
		if err != nil {
			return err
		}

		mu.Lock()
		defer mu.Unlock()

		taken = append(taken, shown.Sub(begin))

		return nil
	})

	return taken, err
}

// longestQueue reads the controller's queues again and again until the context ends, and sends the largest number of
// objects that waited.
func (b *bench) longestQueue(ctx context.Context) <-chan float64 {
	result := make(chan float64, 1)

	go func() {
		longest := 0.0

		for ctx.Err() == nil {
			if metrics, err := b.stack.Controller.Metrics(ctx); err == nil {
				if now, err := parseLoad(metrics); err == nil {
					longest = max(longest, now.queued)
				}
			}

			select {
			case <-ctx.Done():
			case <-time.After(queueSample):
			}
		}

		result <- longest
	}()

	return result
}

// addHangingConnections makes connections to an Omni that takes calls and answers none, with a cluster each.
func (b *bench) addHangingConnections(ctx context.Context) (*omnisim.Server, error) {
	hanging, err := omnisim.Start(omnisim.Options{})
	if err != nil {
		return nil, err
	}

	hanging.Inject(omnisim.Fault{Hang: true})

	key, err := hanging.CreateServiceAccount("operator", omnisim.RoleOperator, keyLifetime)
	if err != nil {
		return hanging, err
	}

	for i := range hangingConnections {
		name := fmt.Sprintf("hanging-%d", i)
		if err := b.createConnection(ctx, name, hanging, key); err != nil {
			return hanging, err
		}

		cluster := connectedCluster(name, name)
		if err := apply(b.admin, ourPath(fleetNamespace, "omniclusters")+"/"+name, encode(cluster)).Do(ctx).Error(); err != nil {
			return hanging, fmt.Errorf("apply cluster %s: %w", name, err)
		}
	}

	return hanging, nil
}
