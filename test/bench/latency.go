package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// probeName is the cluster whose changes are timed.
	probeName = "probe"
	// sampleTimeout bounds one sample.
	sampleTimeout = 30 * time.Second
	// pause lies between two samples, with up to as much again by chance, so that they neither
	// queue up nor keep step with any clock of the operator.
	pause = 400 * time.Millisecond
	// clusterType is Omni's resource of a cluster.
	clusterType = "Clusters.omni.sidero.dev"
	// firstRequested is beside any number that Omni would show by itself.
	firstRequested = 1000
)

// What the kinds of samples are called.
const (
	returnsToOmni  = "kubectl apply returns, to written in Omni"
	startsToOmni   = "kubectl apply starts, to written in Omni"
	changesToWatch = "Omni's status changes, to a watch shows it"
	changesToGet   = "Omni's status changes, to a get after that has it"
)

// latencies times changes in both directions, with so many other clusters.
func (b *bench) latencies(ctx context.Context, others int) error {
	if _, err := b.waitIdle(ctx, 0); err != nil {
		return err
	}

	beside := fmt.Sprintf("%d others", others)

	if err := b.watchBusy("apply to Omni, "+beside, func() error { return b.applyLatency(ctx, others) }); err != nil {
		return err
	}

	return b.watchBusy("Omni to kubectl get, "+beside, func() error { return b.statusLatency(ctx, others) })
}

// applyLatency changes a label with kubectl apply and waits for the write to Omni.
func (b *bench) applyLatency(ctx context.Context, others int) error {
	var fromStart, fromReturn samples

	for i := range b.settings.Samples {
		label := fmt.Sprintf("%d-%d", others, i)
		manifest := encode(clusterObject(ourGroup, probeName, label))

		b.omnis.forgetRequests()

		begin := time.Now()
		if _, _, err := b.stack.KubectlInput(ctx, bytes.NewReader(manifest), "apply", "-n", fleetNamespace, "-f", "-"); err != nil {
			return err
		}

		returned := time.Now()

		written, err := b.waitWrite(ctx)
		if err != nil {
			return fmt.Errorf("sample %d: %w", i, err)
		}

		fromStart = append(fromStart, written.Sub(begin))
		fromReturn = append(fromReturn, written.Sub(returned))

		if err := pauseBetweenSamples(ctx); err != nil {
			return err
		}
	}

	b.reportLatency(returnsToOmni, others, fromReturn, true, "negative: Omni had it before kubectl was done")
	b.reportLatency(startsToOmni, others, fromStart, true, "kubectl's own start included")
	b.addLine("ApplyToOmni", others, fromStart, metric{float64(fromReturn.percentile(99).Nanoseconds()), "p99-after-return-ns"})

	return nil
}

// waitWrite waits for the update of the probe in Omni and returns when it was.
func (b *bench) waitWrite(ctx context.Context) (time.Time, error) {
	deadline := time.Now().Add(sampleTimeout)

	for time.Now().Before(deadline) {
		for _, write := range b.omnis.writes() {
			if write.Type == clusterType && write.ID == probeName && write.Verb == "Update" {
				return write.Time, nil
			}
		}

		if err := ctx.Err(); err != nil {
			return time.Time{}, err
		}

		time.Sleep(2 * time.Millisecond)
	}

	return time.Time{}, errors.New("nothing was written to Omni")
}

// statusLatency changes what Omni says of the cluster and waits until a watch through the
// aggregator shows it, and a get as well.
func (b *bench) statusLatency(ctx context.Context, others int) error {
	var toWatch, toGet samples

	for i := range b.settings.Samples {
		// Two fleets may not use one number.
		want := uint32(firstRequested + others*b.settings.Samples + i)

		begin := time.Now()
		if err := b.omnis.of(0).ReportRequested(probeName, want); err != nil {
			return err
		}

		seen, err := b.waitShown(ctx, int32(want))
		if err != nil {
			return fmt.Errorf("sample %d: %w", i, err)
		}

		toWatch = append(toWatch, seen.Sub(begin))

		got, err := b.clients.OmniV1alpha1().OmniClusters(fleetNamespace).Get(ctx, probeName, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("get the probe: %w", err)
		}

		if got.Status.Omni == nil || got.Status.Omni.Machines.Requested != int32(want) {
			return errors.New("a get shows less than the watch did before: " + strconv.Itoa(int(want)) + " machines")
		}

		toGet = append(toGet, time.Since(begin))

		if err := pauseBetweenSamples(ctx); err != nil {
			return err
		}
	}

	b.reportLatency(changesToWatch, others, toWatch, false, "")
	b.reportLatency(changesToGet, others, toGet, true, "")
	b.addLine("OmniToGet", others, toGet)

	return nil
}

func (b *bench) waitShown(ctx context.Context, want int32) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()

	return b.clusters.waitRequested(ctx, probeName, want)
}

// reportLatency adds the figures of one kind of sample.
func (b *bench) reportLatency(what string, others int, taken samples, aimed bool, note string) {
	var bound *aim
	if aimed {
		bound = below(0.5)
	}

	b.results.add(
		figure{Part: partLatency, Name: latencyName(what, others, "p50"), Value: taken.percentile(50).Seconds(), Unit: "s", Note: note},
		figure{
			Part: partLatency, Name: latencyName(what, others, "p99"), Value: taken.percentile(99).Seconds(), Unit: "s", Aim: bound,
			Note: fmt.Sprintf("%d samples, largest %s s", len(taken), number(taken.percentile(100).Seconds())),
		},
	)
}

// latencyName names one percentile of one kind of sample.
func latencyName(what string, others int, percentile string) string {
	return fmt.Sprintf("%s, %d other clusters: %s", what, others, percentile)
}

// addLine adds the line for benchstat of one kind of sample.
func (b *bench) addLine(name string, others int, taken samples, extra ...metric) {
	b.results.lines = append(b.results.lines, goLine{
		name: fmt.Sprintf("%s/others=%d", name, others), count: len(taken), per: taken.percentile(50),
		extra: append([]metric{{float64(taken.percentile(99).Nanoseconds()), "p99-ns"}}, extra...),
	})
}

// pauseBetweenSamples waits between two samples.
func pauseBetweenSamples(ctx context.Context) error {
	return sleep(ctx, pause+rand.N(pause))
}
