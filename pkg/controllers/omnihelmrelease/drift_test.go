package omnihelmrelease

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/testutil"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
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

// Names of objects and keys of maps may be made of what a Secret holds: no message shows it, also where a pointer escapes
// it, or what would be a command to a terminal.
func TestDriftShowsNothingOfSecrets(t *testing.T) {
	f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) {
		r.Spec.DriftDetection.Mode = v1alpha1.DriftWarn
		r.Spec.Chart.ValuesFrom = []v1alpha1.HelmValuesReference{{Kind: v1alpha1.ValuesSecret, Name: "s"}}
	})

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Data: map[string][]byte{v1alpha1.DefaultValuesKey: []byte(`{a: canary-1, b: "ca/na/ry~2"}`)}}
	if err := f.client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}

	f.cluster.differences = []drift.Difference{
		{Object: drift.Object{Kind: "ConfigMap", Name: "canary-1"}, Missing: true},
		{Object: drift.Object{Kind: "ConfigMap", Name: "app"}, Owner: "ns/canary-1\x1b[2J"},
		{Object: drift.Object{Kind: "ConfigMap", Name: "keys"}, Paths: []string{"/data/canary-1", "/metadata/labels/ca~1na~1ry~02", "/metadata/labels/a~1b"}},
	}
	f.settle()

	for _, conditionType := range []string{v1alpha1.ConditionDrifted, v1alpha1.ConditionReady} {
		message := f.want(conditionType, yes, v1alpha1.ReasonDriftFound)

		for _, hidden := range []string{"canary", "ca~1na", "ca/na", "\x1b"} {
			if strings.Contains(message, hidden) {
				t.Errorf("%s shows %q: %s", conditionType, hidden, message)
			}
		}

		if want := "ConfigMap keys differs at /data/[removed], /metadata/labels/[removed], /metadata/labels/a~1b"; !strings.Contains(message, want) {
			t.Errorf("%s does not say %s: %s", conditionType, want, message)
		}
	}

	for _, event := range f.events.New() {
		if strings.Contains(event, "canary") {
			t.Errorf("an event shows a value: %s", event)
		}
	}
}

// Of what no message names, only the number is kept.
func TestManyDifferencesAreCounted(t *testing.T) {
	var found []drift.Difference

	for range 30 {
		found = append(found, drift.Difference{Object: drift.Object{Kind: "ConfigMap", Name: "a"}, Paths: []string{"/data"}}, drift.Difference{Owner: "ns/b"})
	}

	kept := shown(found, values.Values{})
	for i, difference := range kept {
		if named := difference.Object.Name != "" || len(difference.Paths) > 0; named != (i%2 == 0 && i < 2*maxShownDifferences) {
			t.Errorf("difference %d is %+v", i, difference)
		}
	}

	if len(owned(kept)) != 30 || len(others(kept)) != 30 || !strings.HasSuffix(listed(owned(kept)), "; and 20 more") {
		t.Errorf("got %v", kept)
	}
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

			free := f.waitsForRoom()

			f.pass(test.waited)
			f.cluster.revisions = test.found(f.cluster.revisions)
			free()
			f.wantActions(test.want...)

			if err := f.r.runner.job("uid-of-app").err; interrupted(err) != (len(test.want) == 1) {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}
