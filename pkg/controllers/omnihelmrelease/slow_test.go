package omnihelmrelease

import (
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/asynccache"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// quickTimeouts makes everything that takes 20 ms take too long for a worker.
func (f *fixture) quickTimeouts() {
	f.r.found.Options.AnswerTimeout, f.r.drift.Options.AnswerTimeout = time.Millisecond, time.Millisecond
	f.r.charts = charts.New(charts.Options{
		Renderers: renderers, Guard: dialguard.Guard{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, Now: f.now, Timeout: time.Minute,
	})
}

// hang makes the repository answer nobody, and gives up on it soon.
func (f *fixture) hang() {
	hang(f.charts)
	f.r.charts = charts.New(charts.Options{
		Renderers: renderers, Guard: dialguard.Guard{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, Now: f.now, Timeout: 500 * time.Millisecond,
	})
}

// answered waits until the last question has its answer.
func answered[T any](c *asynccache.Cache[types.NamespacedName, string, T]) {
	for c.Pending(types.NamespacedName{Namespace: "ns", Name: "app"}) {
		time.Sleep(time.Millisecond)
	}
}

// ask reconciles after the interval, and again after each answer.
func (f *fixture) ask() {
	f.t.Helper()
	f.pass(10 * time.Minute)
	f.look()
	answered(f.r.found)
	f.look()
	answered(f.r.drift)
	f.look()
}

// hang answers nobody.
func hang(repository *chartserver.Repository) {
	repository.Handle("/index.yaml", func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() })
}

// What takes long is told when it is known, and not again before it is something else.
func TestWhatTakesLongIsToldOnce(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*fixture)
		fetched string // the reason of ChartFetched
		reason  string // of Ready
	}{
		"a repository that hangs": {func(f *fixture) { f.hang() }, v1alpha1.ReasonRepositoryUnreachable, v1alpha1.ReasonNoDrift},
		"a slow repository without the chart": {func(f *fixture) {
			f.charts.Handle("/index.yaml", func(w http.ResponseWriter, _ *http.Request) {
				time.Sleep(20 * time.Millisecond)
				_, _ = w.Write([]byte("entries: {other: []}"))
			})
		}, v1alpha1.ReasonChartNotFound, v1alpha1.ReasonChartNotFound},
		"a slow comparison": {func(f *fixture) { f.cluster.slow = 20 * time.Millisecond }, v1alpha1.ReasonChartFound, v1alpha1.ReasonNoDrift},
		"a slow comparison that fails": {func(f *fixture) {
			f.cluster.slow, f.cluster.compared = 20*time.Millisecond, &helm.Error{Reason: helm.ReasonTimeout, Message: "too slow"}
		}, v1alpha1.ReasonChartFound, v1alpha1.ReasonClusterUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) { r.Spec.DriftDetection.Mode = v1alpha1.DriftWarn })
			f.settle()
			f.quickTimeouts()
			test.prepare(f)
			f.ask()

			before := f.get()
			ready, fetched := yes, yes

			if test.reason != v1alpha1.ReasonNoDrift {
				ready = no
			}

			if test.fetched != v1alpha1.ReasonChartFound {
				fetched = no
			}

			f.want(v1alpha1.ConditionChartFetched, fetched, test.fetched)
			f.want(v1alpha1.ConditionReady, ready, test.reason)
			f.said()

			for range 3 {
				f.ask()
			}

			if after := f.get(); after.ResourceVersion != before.ResourceVersion {
				t.Errorf("the status was written again: %+v", after.Status)
			}

			if said := f.said(); said != "" {
				t.Errorf("events: %s", said)
			}
		})
	}
}

// What is looked for while nothing is known of it is told.
func TestANewObjectSaysThatItLooks(t *testing.T) {
	f := newFixture(t)
	f.quickTimeouts()
	f.hang()
	f.look()
	f.want(v1alpha1.ConditionChartFetched, no, v1alpha1.ReasonProgressing)
	answered(f.r.found)
	f.look()
	f.want(v1alpha1.ConditionChartFetched, no, v1alpha1.ReasonRepositoryUnreachable)

	f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.Chart.Version = "1.0.1" })
	f.look()
	f.want(v1alpha1.ConditionChartFetched, no, v1alpha1.ReasonProgressing)
}

// A worker waits for a host that hangs once, however many releases want its charts.
func TestARepositoryThatHangsDelaysNobodyElse(t *testing.T) {
	const timeout = 2 * time.Second

	f := newFixture(t)
	hung := chartserver.StartRepository()

	defer hung.Close()
	hang(hung)

	f.r.found.Options.AnswerTimeout = timeout
	waited := 0

	for i := range 20 {
		name := fmt.Sprintf("hung-%d", i)
		f.add(name, func(r *v1alpha1.OmniHelmRelease) { r.Spec.Chart.Repository = hung.URL() })

		begun := time.Now()
		f.lookAt(name)
		f.lookAt(name)

		if time.Since(begun) >= timeout {
			waited++
		}
	}

	f.r.found.Options.AnswerTimeout = time.Minute
	f.settle()
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)

	// If it waited once for each release, it would be 20 times. On a busy machine a run may take as long without waiting.
	if waited > 10 {
		t.Errorf("the only worker waited %d times", waited)
	}
}

// Hosts that hang, as many as there are slots, are asked for one namespace: releases of another have their charts all the same.
func TestHostsThatHangLeaveOtherNamespacesAlone(t *testing.T) {
	f := newFixture(t)
	f.r.found.Options.AnswerTimeout = time.Millisecond

	for i := range 2 * actionsPerWorker {
		hung := chartserver.StartRepository()
		defer hung.Close()

		hang(hung)

		name := fmt.Sprintf("hung-%d", i)
		f.add(name, func(r *v1alpha1.OmniHelmRelease) { r.Spec.Chart.Repository = hung.URL() })
		f.lookAt(name)
	}

	theirs := client.ObjectKey{Namespace: "another", Name: "app"}
	f.add(theirs.Name, func(r *v1alpha1.OmniHelmRelease) { r.Namespace = theirs.Namespace })

	await.Until(t, "the chart of the other namespace", func() bool {
		if _, err := f.loop.Reconcile(t.Context(), reconcile.Request{NamespacedName: theirs}); err != nil {
			t.Fatal(err)
		}

		release := &v1alpha1.OmniHelmRelease{}
		if err := f.client.Get(t.Context(), theirs, release); err != nil {
			t.Fatal(err)
		}

		return apimeta.IsStatusConditionTrue(release.Status.Conditions, v1alpha1.ConditionChartFetched)
	})
}

// A host has as many slots as before, however many namespaces ask it.
func TestNamespacesShareAHost(t *testing.T) {
	f := newFixture(t)
	f.r.found.Options.AnswerTimeout = time.Millisecond

	hung := chartserver.StartRepository()
	defer hung.Close()

	hang(hung)

	for i := range 2 * actionsPerWorker {
		name := types.NamespacedName{Namespace: fmt.Sprintf("ns-%d", i), Name: "app"}
		f.add(name.Name, func(r *v1alpha1.OmniHelmRelease) { r.Namespace, r.Spec.Chart.Repository = name.Namespace, hung.URL() })

		if _, err := f.loop.Reconcile(t.Context(), reconcile.Request{NamespacedName: name}); err != nil {
			t.Fatal(err)
		}
	}

	for _, waiting := f.r.found.Options.Limiter.Load(); waiting < 2*actionsPerWorker-1; _, waiting = f.r.found.Options.Limiter.Load() {
		time.Sleep(time.Millisecond)
	}

	if taken, _ := f.r.found.Options.Limiter.Load(); taken != 1 {
		t.Errorf("%d questions are asked of one host", taken)
	}
}

func (f *fixture) lookAt(name string) {
	f.t.Helper()

	if _, err := f.loop.Reconcile(f.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: name}}); err != nil {
		f.t.Fatal(err)
	}
}
