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
	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// waitsForRoom begins what is next, which waits before it changes anything until free is called.
func (f *fixture) waitsForRoom() (free func()) {
	f.t.Helper()

	room := make(chan struct{})

	f.cluster.mu.Lock()
	f.cluster.room = room
	before := f.cluster.waiting
	f.cluster.mu.Unlock()

	f.look()
	await.Until(f.t, "an action waits for room", func() bool { f.cluster.mu.Lock(); defer f.cluster.mu.Unlock(); return f.cluster.waiting > before })

	return func() {
		f.cluster.mu.Lock()
		f.cluster.room = nil
		f.cluster.mu.Unlock()

		close(room)
		f.waitUntilEnded()
	}
}

// An action may wait long before it changes anything. What is edited until then counts, and is no failure.
func TestAnActionThatChangedNothingIsWithdrawn(t *testing.T) {
	for name, test := range map[string]struct {
		change func(f *fixture)
		want   []helm.Action // in the end
	}{
		"suspended":          {change: func(f *fixture) { f.edit(suspend(true)) }},
		"other values":       {change: func(f *fixture) { f.edit(withValues(`{"word":"new"}`)) }, want: []helm.Action{helm.ActionInstall}},
		"no access":          {change: func(f *fixture) { f.access.outcome = loop.Stall(v1alpha1.ReasonWrongCluster, "it is another one") }},
		"another kubeconfig": {change: func(f *fixture) { f.access.kubeconfig = "another" }, want: []helm.Action{helm.ActionInstall}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.run() // writes what it will attempt

			free := f.waitsForRoom()

			f.said()
			test.change(f)
			f.look()
			free()
			f.wantWithdrawn()
			f.wantActions()
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
			f.pass(10 * time.Minute)

			free := f.waitsForRoom()

			f.said()
			f.edit(change)
			free()
			f.wantWithdrawn()
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

// An edit that leaves a correction as it was ends the one that waits, and another begins at once: nothing failed. If that
// happens again and again, it is told.
func TestACorrectionBeginsAgainAfterAnEdit(t *testing.T) {
	f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) { r.Spec.DriftDetection.Mode = v1alpha1.DriftCorrect })
	f.settle()

	f.cluster.differences = []drift.Difference{{Object: drift.Object{Kind: "ConfigMap", Name: "app"}, Missing: true}}
	f.pass(10 * time.Minute)

	interrupt := func(interval v1alpha1.Duration) {
		free := f.waitsForRoom()
		f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.Interval = interval })
		free()
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

	await.Until(f.t, "an action begins", func() bool { return len(f.cluster.actions()) > 0 })

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

// wantWithdrawn expects that the action ended without a trace.
func (f *fixture) wantWithdrawn() {
	f.t.Helper()

	if found := f.r.runner.job("uid-of-app"); !interrupted(found.err) || found.changing || found.failures() != 0 {
		f.t.Errorf("the job is %+v", found)
	}

	if said := f.said(); strings.Contains(said, "Failed") {
		f.t.Errorf("events: %s", said)
	}
}
