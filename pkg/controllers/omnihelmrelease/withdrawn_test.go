package omnihelmrelease

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// An action that has a slot may wait long before it changes anything. Until then it is withdrawn as one that has none.
func TestAnActionThatChangedNothingIsWithdrawn(t *testing.T) {
	for name, test := range map[string]struct {
		change func(f *fixture)
		want   []helm.Action // in the end
	}{
		"suspended":    {change: func(f *fixture) { f.edit(suspend(true)) }},
		"other values": {change: func(f *fixture) { f.edit(withValues(`{"word":"new"}`)) }, want: []helm.Action{helm.ActionInstall}},
		"no access":    {change: func(f *fixture) { f.access.outcome = loop.Stall(v1alpha1.ReasonWrongCluster, "it is another one") }},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.cluster.room = make(chan struct{})
			f.run() // writes what it will attempt
			f.look()

			f.await("no action waits for room", func() bool { f.cluster.mu.Lock(); defer f.cluster.mu.Unlock(); return f.cluster.waiting > 0 })

			f.said()
			test.change(f)
			f.wantWithdrawn()
			f.wantActions()

			close(f.cluster.room)
			f.settle()
			f.wantActions(test.want...)
		})
	}
}

// A correction of drift that waits for memory is withdrawn as well.
func TestACorrectionThatChangedNothingIsWithdrawn(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.OmniHelmRelease){
		"suspended": suspend(true),
		"only warn": func(r *v1alpha1.OmniHelmRelease) { r.Spec.DriftDetection.Mode = v1alpha1.DriftWarn },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) { r.Spec.DriftDetection.Mode = v1alpha1.DriftCorrect })
			f.settle()

			f.cluster.differences = []drift.Difference{{Object: drift.Object{Kind: "ConfigMap", Name: "app"}, Missing: true}}
			f.cluster.room = make(chan struct{})
			f.pass(10 * time.Minute)
			f.look()
			f.await("no correction waits for room", func() bool { f.cluster.mu.Lock(); defer f.cluster.mu.Unlock(); return f.cluster.waiting > 0 })

			f.said()
			f.edit(change)
			f.wantWithdrawn()

			close(f.cluster.room)
			f.settle()
			f.wantActions(helm.ActionInstall)

			// It is begun at once when it is wanted again.
			f.edit(func(r *v1alpha1.OmniHelmRelease) {
				suspend(false)(r)
				r.Spec.DriftDetection.Mode = v1alpha1.DriftCorrect
			})
			f.settle()
			f.wantActions(helm.ActionInstall, actionCorrect)
			f.want(v1alpha1.ConditionDrifted, no, v1alpha1.ReasonDriftCorrected)
		})
	}
}

// An edit counts when the turn of a correction comes, also if no run has seen it yet.
func TestACorrectionLooksAtTheSpecWhenItsTurnComes(t *testing.T) {
	f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) { r.Spec.DriftDetection.Mode = v1alpha1.DriftCorrect })
	f.settle()

	f.cluster.differences = []drift.Difference{{Object: drift.Object{Kind: "ConfigMap", Name: "app"}, Missing: true}}
	f.pass(10 * time.Minute)
	free := f.hold()
	f.look()
	f.edit(suspend(true))
	free()
	f.waitUntilEnded()
	f.wantActions(helm.ActionInstall)

	if err := f.r.runner.job("uid-of-app").err; !errors.Is(err, errWithdrawn) {
		t.Errorf("it ended with %v", err)
	}
}

// An edit that leaves a correction as it was ends the one that waits, and another begins at once: nothing failed. If that
// happens again and again, it is told.
func TestACorrectionBeginsAgainAfterAnEdit(t *testing.T) {
	f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) { r.Spec.DriftDetection.Mode = v1alpha1.DriftCorrect })
	f.settle()

	f.cluster.differences = []drift.Difference{{Object: drift.Object{Kind: "ConfigMap", Name: "app"}, Missing: true}}
	f.pass(10 * time.Minute)

	interrupt := func(interval v1alpha1.Duration) {
		free := f.hold()
		f.look()
		f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.Interval = interval })
		free()
		f.waitUntilEnded()
	}

	interrupt("7m")
	f.said()
	interrupt("8m") // the run before the edit begins it again

	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDriftFound)

	if said := f.said(); strings.Contains(said, "Failed") {
		t.Errorf("events: %s", said)
	}

	f.look() // it was interrupted twice
	f.wantActions(helm.ActionInstall)

	if message := f.want(v1alpha1.ConditionDrifted, yes, v1alpha1.ReasonActionFailed); !strings.Contains(message, errWithdrawn.Message) {
		t.Error(message)
	}

	f.pass(30 * time.Second)
	f.settle()
	f.wantActions(helm.ActionInstall, actionCorrect)
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDriftCorrected)
}

// What has begun to change something goes on to its end.
func TestAnActionThatChangedSomethingIsNotWithdrawn(t *testing.T) {
	f := newFixture(t)
	f.run()
	f.cluster.hold = make(chan struct{})
	f.look()

	f.await("nothing was begun", func() bool { return len(f.cluster.actions()) > 0 })

	f.edit(suspend(true))
	f.look()
	close(f.cluster.hold)
	f.waitUntilEnded()

	if err := f.r.runner.job("uid-of-app").err; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// editing is a fetcher of which each chart is waited for until somebody has edited the object.
type editing struct {
	fetcher

	edit func()
}

func (e *editing) Open(ctx context.Context, source charts.Source, resolved *charts.Resolved) (*charts.Archive, error) {
	e.edit()

	return e.fetcher.Open(ctx, source, resolved)
}

// An edit while an action waits for its chart counts as one before, whatever it changes.
func TestAnActionLooksAtTheSpecBehindItsChart(t *testing.T) {
	f := newFixture(t)
	f.run()
	f.r.charts = &editing{f.r.charts, func() { f.edit(suspend(true)) }}
	f.look()
	f.waitUntilEnded()
	f.wantActions()

	if err := f.r.runner.job("uid-of-app").err; !errors.Is(err, errWithdrawn) {
		t.Errorf("it ended with %v", err)
	}
}

// wantWithdrawn looks at the release, and expects that its action ends without a trace.
func (f *fixture) wantWithdrawn() {
	f.t.Helper()
	f.look()
	f.waitUntilEnded()

	if found := f.r.runner.job("uid-of-app"); !errors.Is(found.err, errWithdrawn) || found.failedInRow != 0 || !found.firstBegun.IsZero() || found.failures() != 0 {
		f.t.Errorf("the job is %+v", found)
	}

	if said := f.said(); strings.Contains(said, "Failed") {
		f.t.Errorf("events: %s", said)
	}
}
