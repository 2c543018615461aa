package omnihelmrelease

import (
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/testutil"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
)

// wantDrifted checks the metric of the release; an empty value means that it is absent.
func (f *fixture) wantDrifted(value string) {
	f.t.Helper()

	want := ""
	if value != "" {
		want = `# HELP omni_helm_drifted 1 if live objects differ from the release of an OmniHelmRelease, else 0. Absent if that is not known.
# TYPE omni_helm_drifted gauge
omni_helm_drifted{name="app",namespace="ns"} ` + value + "\n"
	}

	if err := testutil.CollectAndCompare(f.r.options.Objects, strings.NewReader(want), "omni_helm_drifted"); err != nil {
		f.t.Error(err)
	}
}

func TestDrift(t *testing.T) {
	f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) { r.Spec.DriftDetection.Mode = v1alpha1.DriftWarn })
	f.settle()
	f.want(v1alpha1.ConditionDrifted, no, v1alpha1.ReasonNoDrift)

	f.cluster.differences = []drift.Difference{{Object: drift.Object{Kind: "ConfigMap", Name: "app"}, Paths: []string{"/data/a"}}}
	f.run() // too soon to look again
	f.want(v1alpha1.ConditionDrifted, no, v1alpha1.ReasonNoDrift)
	f.pass(10 * time.Minute)
	f.settle()

	if message := f.want(v1alpha1.ConditionDrifted, yes, v1alpha1.ReasonDriftFound); !strings.Contains(message, "ConfigMap app differs at /data/a") {
		t.Error(message)
	}

	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDriftFound)
	f.wantDrifted("1")
	f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.DriftDetection.Mode = v1alpha1.DriftCorrect })
	f.settle()
	f.want(v1alpha1.ConditionDrifted, no, v1alpha1.ReasonDriftCorrected)
	f.wantDrifted("0")
	f.wantActions(helm.ActionInstall, actionCorrect)
	f.pass(10 * time.Minute)
	f.settle()
	f.want(v1alpha1.ConditionDrifted, no, v1alpha1.ReasonNoDrift)
	f.wantActions(helm.ActionInstall, actionCorrect)

	f.cluster.compared = &helm.Error{Reason: helm.ReasonUnreachable, Message: "no route"}
	f.pass(10 * time.Minute)
	f.settle()

	if drifted := apimeta.FindStatusCondition(f.get().Status.Conditions, v1alpha1.ConditionDrifted); drifted == nil || !strings.Contains(drifted.Message, "no route") {
		t.Errorf("%+v", drifted)
	}

	f.wantDrifted("") // who cannot compare does not know
	f.cluster.compared = nil
	f.pass(10 * time.Minute)
	f.settle()
	f.wantDrifted("0")
	f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.DriftDetection.Mode = v1alpha1.DriftDisabled })
	f.settle()
	f.want(v1alpha1.ConditionDrifted, metav1.ConditionUnknown, v1alpha1.ReasonDisabled)
	f.wantDrifted("")
}

// An object that cannot be compared keeps nothing of the others back.
func TestDriftThatIsNotWhole(t *testing.T) {
	f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) { r.Spec.DriftDetection.Mode = v1alpha1.DriftWarn })
	f.cluster.differences = []drift.Difference{{Object: drift.Object{Kind: "ConfigMap", Name: "app"}, Missing: true}}
	f.cluster.compared = &helm.Error{Reason: helm.ReasonFailed, Message: "compare Secret x: a webhook refuses dry runs"}
	f.settle()

	message := f.want(v1alpha1.ConditionDrifted, yes, v1alpha1.ReasonDriftFound)
	if !strings.Contains(message, "ConfigMap app is missing") || !strings.Contains(message, "a webhook refuses dry runs") {
		t.Error(message)
	}

	f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.DriftDetection.Mode = v1alpha1.DriftCorrect })
	f.settle()
	f.wantActions(helm.ActionInstall, actionCorrect)

	if message := f.want(v1alpha1.ConditionDrifted, yes, v1alpha1.ReasonError); !strings.Contains(message, "a webhook refuses dry runs") {
		t.Error(message)
	}
}

// What another release has by now is shown and not applied, alone or beside what is corrected.
func TestDriftOfWhatIsAnotherReleases(t *testing.T) {
	moved := drift.Difference{Object: drift.Object{Kind: "ConfigMap", Name: "moved"}, Owner: "ns/another"}
	f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) { r.Spec.DriftDetection.Mode = v1alpha1.DriftCorrect })
	f.cluster.differences = []drift.Difference{moved}
	f.settle()

	if message := f.want(v1alpha1.ConditionDrifted, yes, v1alpha1.ReasonDriftFound); !strings.Contains(message, "ConfigMap moved belongs to Helm release ns/another") {
		t.Error(message)
	}

	f.wantActions(helm.ActionInstall)

	f.cluster.differences = []drift.Difference{moved, {Object: drift.Object{Kind: "ConfigMap", Name: "app"}, Missing: true}}
	f.pass(10 * time.Minute)
	f.settle()
	f.wantActions(helm.ActionInstall, actionCorrect)

	message := f.want(v1alpha1.ConditionDrifted, yes, v1alpha1.ReasonDriftFound)
	if !strings.Contains(message, "applied again: ConfigMap app is missing; these are another release's: ConfigMap moved belongs to") {
		t.Error(message)
	}

	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDriftFound)
}

// A correction that waited long for its turn must not force what another revision, or another owner, replaced.
func TestACorrectionThatWaitedLooksAgain(t *testing.T) {
	for name, test := range map[string]struct {
		waited time.Duration
		found  func(now []helm.Revision) []helm.Revision // when the turn comes
		want   []helm.Action
	}{
		"not long": {time.Second, func([]helm.Revision) []helm.Revision { return nil }, []helm.Action{helm.ActionInstall, actionCorrect}},
		"long, the same": {time.Minute, func(now []helm.Revision) []helm.Revision { return now },
			[]helm.Action{helm.ActionInstall, actionCorrect}},
		"long, gone": {time.Minute, func([]helm.Revision) []helm.Revision { return nil }, []helm.Action{helm.ActionInstall}},
		"long, another's": {time.Minute, func(now []helm.Revision) []helm.Revision {
			now[0].Owner = "another"

			return now
		}, []helm.Action{helm.ActionInstall}},
		"long, one revision more": {time.Minute, func(now []helm.Revision) []helm.Revision {
			return append([]helm.Revision{{Number: 2, Status: helm.StatusDeployed}}, now...)
		}, []helm.Action{helm.ActionInstall}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) { r.Spec.DriftDetection.Mode = v1alpha1.DriftCorrect })
			f.settle()
			f.cluster.differences = []drift.Difference{{Object: drift.Object{Kind: "ConfigMap", Name: "app"}, Missing: true}}
			f.pass(10 * time.Minute)
			free := f.hold()
			f.look()

			if found := f.r.runner.job("uid-of-app"); !found.running() || found.action != actionCorrect {
				t.Fatalf("the job is %+v", found)
			}

			f.pass(test.waited)
			f.cluster.revisions = test.found(f.cluster.revisions)
			free()
			f.waitUntilEnded()
			f.wantActions(test.want...)

			if err := f.r.runner.job("uid-of-app").err; interrupted(err) != (len(test.want) == 1) {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}
