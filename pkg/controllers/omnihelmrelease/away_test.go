package omnihelmrelease

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// away makes the repository answer as a gateway does with nothing behind it, after its former answers have lost their meaning.
func (f *fixture) away() {
	for _, path := range []string{"/index.yaml", "/demo-1.0.0.tgz"} {
		f.charts.Handle(path, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	}

	f.pass(10 * time.Minute)
}

func valued(text string) func(*v1alpha1.OmniHelmRelease) {
	return func(r *v1alpha1.OmniHelmRelease) { r.Spec.Chart.Values = &v1alpha1.FreeForm{Raw: []byte(text)} }
}

// While a repository is away, a release that needs nothing from it stays Ready, and its workload cluster is looked after, also by
// a process that has not asked the repository yet.
func TestARepositoryThatIsAway(t *testing.T) {
	for name, version := range map[string]string{"one version": "1.0.0", "a range": "^1"} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) {
				r.Spec.Chart.Version, r.Spec.DriftDetection.Mode = version, v1alpha1.DriftCorrect
			})
			f.settle()
			ready := f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonNoDrift)
			f.said()
			f.away()

			for range 2 {
				f.settle()

				if message := f.want(v1alpha1.ConditionChartFetched, no, v1alpha1.ReasonRepositoryUnreachable); !strings.Contains(message, "chart demo 1.0.0") {
					t.Error(message)
				}

				if got := f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonNoDrift); got != ready {
					t.Errorf("%q became %q", ready, got)
				}

				f.restart()
				f.pass(10 * time.Minute)
			}

			if said := f.said(); said != "" {
				t.Errorf("events: %s", said)
			}

			f.cluster.differences = []drift.Difference{{Object: drift.Object{Kind: "ConfigMap", Name: "app"}, Missing: true}}
			f.settle()
			f.wantActions(helm.ActionInstall, actionCorrect)

			f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.Interval = "7m" })
			f.settle()
			f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDriftCorrected)
		})
	}
}

// It is asked again soon, and not when the interval of the release is over.
func TestARepositoryThatIsAwayIsAskedAgainSoon(t *testing.T) {
	f := newFixture(t)
	f.settle()
	f.away()
	f.settle()
	f.want(v1alpha1.ConditionChartFetched, no, v1alpha1.ReasonRepositoryUnreachable)
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)

	after := f.look().RequeueAfter
	if after <= 0 || after > time.Minute {
		t.Errorf("the next look is in %s", after)
	}

	f.charts.Handle("/index.yaml", nil)
	f.charts.Handle("/demo-1.0.0.tgz", nil)
	f.pass(after)
	f.settle()
	f.want(v1alpha1.ConditionChartFetched, yes, v1alpha1.ReasonChartFound)
}

// Nor does one that hangs, which a release may wait for in vain for long, behind others.
func TestARepositoryThatHangsStopsNothingElse(t *testing.T) {
	f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) { r.Spec.DriftDetection.Mode = v1alpha1.DriftCorrect })
	f.settle()
	before := f.get()
	hang(f.charts)

	f.r.found.Options.AnswerTimeout = time.Millisecond
	f.cluster.differences = []drift.Difference{{Object: drift.Object{Kind: "ConfigMap", Name: "app"}, Missing: true}}
	f.pass(10 * time.Minute)
	f.settle()
	f.wantActions(helm.ActionInstall, actionCorrect)
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDriftCorrected)
	f.want(v1alpha1.ConditionChartFetched, yes, v1alpha1.ReasonChartFound)

	// Who asks is not told that somebody has looked.
	f.edit(func(r *v1alpha1.OmniHelmRelease) {
		r.Annotations = map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "now"}
		r.Generation-- // which annotations leave
	})
	f.look()

	if got := f.get().Status; got.LastHandledReconcileAt != before.Status.LastHandledReconcileAt {
		t.Errorf("%q is handled", got.LastHandledReconcileAt)
	}

	f.r.found.Forget(client.ObjectKeyFromObject(before))
}

// What needs the chart's archive waits for the repository, unless the archive is here.
func TestWhatNeedsAChartOfARepositoryThatIsAway(t *testing.T) {
	f := newFixture(t)
	f.settle()
	f.away()
	f.edit(valued(`{"a":1}`))
	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionUpgrade)
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)

	f.restart() // without the archive
	f.edit(valued(`{"a":2}`))
	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionUpgrade)

	for _, condition := range []string{v1alpha1.ConditionReleased, v1alpha1.ConditionReady} {
		if message := f.want(condition, no, v1alpha1.ReasonRepositoryUnreachable); !strings.Contains(message, "stays as it is") {
			t.Error(message)
		}
	}

	before := f.get().ResourceVersion
	f.pass(time.Minute)
	f.settle()

	if after := f.get().ResourceVersion; after != before {
		t.Error("the status was written again")
	}

	f.charts.Handle("/index.yaml", nil)
	f.charts.Handle("/demo-1.0.0.tgz", nil)
	f.pass(time.Minute)
	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionUpgrade, helm.ActionUpgrade)
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
	f.want(v1alpha1.ConditionChartFetched, yes, v1alpha1.ReasonChartFound)
}

// What a repository said of one chart says nothing of another, nor that somebody has signed it.
func TestARepositoryThatIsAwayHasSaidNothingOfAnotherChart(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.OmniHelmRelease){
		"another name":       func(r *v1alpha1.OmniHelmRelease) { r.Spec.Chart.Chart = "other" },
		"another repository": func(r *v1alpha1.OmniHelmRelease) { r.Spec.Chart.Repository += "/" },
		"another version":    func(r *v1alpha1.OmniHelmRelease) { r.Spec.Chart.Version = "1.x" },
		"verified":           verified,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.trust(chartserver.NewSigner("ours"))
			f.settle()
			f.away()
			f.edit(change)
			f.settle()
			f.want(v1alpha1.ConditionReady, no, v1alpha1.ReasonRepositoryUnreachable)
			f.want(v1alpha1.ConditionReleased, unknown, v1alpha1.ReasonBlocked)
		})
	}
}
