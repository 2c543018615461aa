package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/env"
)

const (
	// policyName is the OmniRolloutPolicy that selects every cluster of the fleet.
	policyName = "fleet"
	// maxConcurrent is how many clusters the policy lets work at once.
	maxConcurrent = 100
	// nextVersion is the Kubernetes version that all clusters of the fleet are asked to run.
	nextVersion = "v1.36.1"
	// limitSample is how often the clusters that are being upgraded are counted.
	limitSample = 100 * time.Millisecond
)

func policyPath() string { return ourPath(fleetNamespace, "omnirolloutpolicies") }

// hold asks all clusters of the fleet for another version while a policy holds them, and reports what that costs, and
// what clusters that wait cost afterwards.
func (b *bench) hold(ctx context.Context) error {
	policy := rolloutPolicy(policyName, maxConcurrent)
	if err := b.admin.Post().AbsPath(policyPath()).Body(encode(policy)).Do(ctx).Error(); err != nil {
		return fmt.Errorf("create the OmniRolloutPolicy: %w", err)
	}

	b.omnis.forgetRequests()

	begin := time.Now()

	var asked, held, idle time.Time

	if err := b.watchBusy(fmt.Sprintf("%d clusters begin to wait", b.size), func() (err error) {
		if asked, err = b.askForNextVersion(ctx); err != nil {
			return err
		}

		if held, err = b.waitPolicy(ctx, "all clusters to be held", func(s v1alpha1.OmniRolloutPolicyStatus) bool { return int(s.Held) == b.size }); err != nil {
			return err
		}

		idle, err = b.waitIdle(ctx, 0)

		return err
	}); err != nil {
		return err
	}

	if err := b.reportHeld(begin, asked, held, idle); err != nil {
		return err
	}

	return b.waitingFleet(ctx)
}

// askForNextVersion patches every cluster of the fleet, and returns when the last patch was accepted.
func (b *bench) askForNextVersion(ctx context.Context) (time.Time, error) {
	version := encode(map[string]any{"spec": map[string]any{"kubernetes": map[string]any{"version": nextVersion}}})

	err := inParallel(ctx, creators, b.size, func(ctx context.Context, _, i int) error {
		path := ourPath(fleetNamespace, "omniclusters") + "/" + fleetName(i)
		if err := mergePatch(b.admin, path, version).Do(ctx).Error(); err != nil {
			return fmt.Errorf("patch %s: %w", path, err)
		}

		return nil
	})

	return time.Now(), err
}

// waitPolicy waits until the status of the policy is as wanted, and returns when it was.
func (b *bench) waitPolicy(ctx context.Context, what string, wanted func(v1alpha1.OmniRolloutPolicyStatus) bool) (time.Time, error) {
	err := env.Eventually(ctx, stepTimeout, what, func(ctx context.Context) error {
		policy, err := b.clients.OmniV1alpha1().OmniRolloutPolicies(fleetNamespace).Get(ctx, policyName, metav1.GetOptions{})
		if err != nil {
			return err
		}

		if !wanted(policy.Status) {
			return fmt.Errorf("%d are held, %d admitted, %d failed", policy.Status.Held, len(policy.Status.Admitted), policy.Status.FailedCount)
		}

		return nil
	})

	return time.Now(), err
}

func (b *bench) reportHeld(begin, asked, held, idle time.Time) error {
	what := fmt.Sprintf("%d clusters begin to wait: ", b.size)

	ours, err := writesInFile(b.file(ourAuditLog), controllerUser, begin)
	if err != nil {
		return err
	}

	b.results.add(
		figure{Part: partRollout, Name: what + "all asked", Value: asked.Sub(begin).Seconds(), Unit: "s", Note: fmt.Sprintf("a patch each, %d at a time", creators)},
		figure{Part: partRollout, Name: what + "all counted as held", Value: held.Sub(begin).Seconds(), Unit: "s"},
		figure{Part: partRollout, Name: what + "controller idle", Value: idle.Sub(begin).Seconds(), Unit: "s"},
		figure{Part: partRollout, Name: what + "writes to our API per cluster", Value: float64(total(ours)) / float64(b.size), Unit: "writes", Note: list(ours)},
		figure{Part: partRollout, Name: what + "writes to Omni", Value: float64(len(b.omnis.writes())), Unit: "writes", Aim: exactly(0), Note: fmt.Sprintf("%d requests", b.omnis.requests())},
	)

	return nil
}

// waitingFleet counts what clusters that wait cost while nothing happens.
func (b *bench) waitingFleet(ctx context.Context) error {
	what := fmt.Sprintf("%d waiting clusters", b.size)

	return b.watchBusy(what, func() error {
		b.omnis.forgetRequests()

		begin := time.Now()

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(b.settings.IdleWindow):
		}

		requests, writes := b.omnis.requests(), len(b.omnis.writes())

		ours, err := writesInFile(b.file(ourAuditLog), controllerUser, begin)
		if err != nil {
			return err
		}

		b.results.add(
			figure{Part: partRollout, Name: what + ": requests to Omni", Value: float64(requests) / b.settings.IdleWindow.Seconds(), Unit: "requests/s", Aim: below(1), Note: fmt.Sprintf("%d in %s, %d of them writes", requests, b.settings.IdleWindow, writes)},
			figure{Part: partRollout, Name: what + ": writes to our API", Value: float64(total(ours)), Unit: "writes", Aim: exactly(0), Note: list(ours)},
		)

		return nil
	})
}

// rollOut lets the waiting clusters take their turns, counts how many Omni upgrades at the same time, and reports it.
func (b *bench) rollOut(ctx context.Context) error {
	b.omnis.forgetRequests()

	counting, stop := context.WithCancel(ctx)
	most := b.mostAtOnce(counting)

	defer stop()

	begin := time.Now()

	var done time.Time

	if err := b.watchBusy(fmt.Sprintf("a rollout through %d clusters", b.size), func() (err error) {
		if err := mergePatch(b.admin, policyPath()+"/"+policyName, encode(map[string]any{"spec": map[string]any{"hold": false}})).Do(ctx).Error(); err != nil {
			return fmt.Errorf("release the OmniRolloutPolicy: %w", err)
		}

		done, err = b.waitPolicy(ctx, "no cluster to wait or work", func(s v1alpha1.OmniRolloutPolicyStatus) bool {
			return s.Held == 0 && len(s.Admitted) == 0
		})

		return err
	}); err != nil {
		return err
	}

	stop()

	return b.reportRollout(begin, done, <-most)
}

// mostAtOnce counts again and again how many clusters Omni upgrades, until the context ends, and sends the largest count.
func (b *bench) mostAtOnce(ctx context.Context) <-chan int {
	result := make(chan int, 1)

	go func() {
		most := 0

		for ctx.Err() == nil {
			if names, err := b.omnis.upgrading(ctx); err == nil {
				most = max(most, len(names))
			}

			select {
			case <-ctx.Done():
			case <-time.After(limitSample):
			}
		}

		result <- most
	}()

	return result
}

func (b *bench) reportRollout(begin, done time.Time, most int) error {
	what := fmt.Sprintf("a rollout through %d clusters: ", b.size)
	writes, last := b.writesToOmni()

	ours, err := writesInFile(b.file(ourAuditLog), controllerUser, begin)
	if err != nil {
		return err
	}

	b.results.add(
		figure{Part: partRollout, Name: what + "last write to Omni", Value: last.Sub(begin).Seconds(), Unit: "s"},
		figure{Part: partRollout, Name: what + "all turns are over", Value: done.Sub(begin).Seconds(), Unit: "s", Note: "a turn lasts at least the ready time of a second"},
		figure{Part: partRollout, Name: what + "most clusters at work at once", Value: float64(most), Unit: "clusters", Aim: below(maxConcurrent + 1), Note: "counted in Omni every " + limitSample.String()},
		figure{Part: partRollout, Name: what + "writes to Omni", Value: float64(writes), Unit: "writes", Aim: exactly(float64(b.size)), Note: "a version each"},
		figure{Part: partRollout, Name: what + "writes to our API per cluster", Value: float64(total(ours)) / float64(b.size), Unit: "writes", Note: list(ours)},
	)
	b.results.lines = append(b.results.lines, goLine{
		name: fmt.Sprintf("Rollout/clusters=%d", b.size), count: b.size, per: done.Sub(begin) / time.Duration(b.size),
		extra: []metric{{float64(most), "at-work"}, {float64(total(ours)), "api-writes"}},
	})

	return nil
}
