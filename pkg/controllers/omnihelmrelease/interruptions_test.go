package omnihelmrelease

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
)

// said are the events since it was called last.
func (f *fixture) said() string { return strings.Join(f.events.New(), "\n") }

func TestADeletionInterruptsWhatIsUnderWay(t *testing.T) {
	f := newFixture(t)
	f.run()
	f.cluster.hold = make(chan struct{})
	f.look()
	f.want(v1alpha1.ConditionReconciling, yes, v1alpha1.ReasonProgressing)

	if err := f.client.Delete(t.Context(), f.get()); err != nil {
		t.Fatal(err)
	}

	f.look()
	f.cluster.mu.Lock()
	f.cluster.hold = nil
	f.cluster.mu.Unlock()
	f.settle()
	f.settle()

	if err := f.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "app"}, &v1alpha1.OmniHelmRelease{}); !apierrors.IsNotFound(err) {
		t.Fatalf("the object is there: %v", err)
	}
}

func TestAnUninstallKnowsWhatToKeepSecret(t *testing.T) {
	f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) {
		r.Spec.Chart.ValuesFrom = []v1alpha1.HelmValuesReference{{Kind: v1alpha1.ValuesSecret, Name: "words", Key: "word", TargetPath: "word"}}
	})

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "words"}, Data: map[string][]byte{"word": []byte("canary")}}
	if err := f.client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}

	f.settle()
	f.restart()

	if err := f.client.Delete(t.Context(), f.get()); err != nil {
		t.Fatal(err)
	}

	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionUninstall)

	if got := f.cluster.values.Redact("the canary is refused"); got != "the [removed] is refused" {
		t.Error(got)
	}
}

// Who waits long for a turn must not do what was decided about another release.
func TestAnActionThatWaitedLooksAgain(t *testing.T) {
	for name, test := range map[string]struct {
		waited time.Duration
		found  []helm.Revision // when the turn comes
		want   []helm.Action
	}{
		"not long":           {time.Second, []helm.Revision{{Number: 1, Owner: "another"}}, []helm.Action{helm.ActionUninstall}},
		"long, the same":     {time.Minute, []helm.Revision{{Number: 1, Owner: "uid-of-app"}}, []helm.Action{helm.ActionUninstall}},
		"long, another's":    {time.Minute, []helm.Revision{{Number: 1, Owner: "another"}}, nil},
		"long, gone":         {time.Minute, nil, nil},
		"long, one revision": {time.Minute, []helm.Revision{{Number: 2}, {Number: 1, Owner: "uid-of-app"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			run := f.r.action(&scope{
				release: f.get(), engine: f.cluster, decision: helm.Decision{Action: helm.ActionUninstall},
				observed: &helm.Observed{Revisions: []helm.Revision{{Number: 1, Owner: "uid-of-app"}}},
			})

			f.pass(test.waited)
			f.cluster.revisions = test.found

			if err := run(t.Context()); interrupted(err) != (test.want == nil) {
				t.Errorf("it ended with %v", err)
			}

			f.wantActions(test.want...)
		})
	}
}

func TestOutages(t *testing.T) {
	f := newFixture(t)
	f.settle()
	f.cluster.lost = &helm.Error{Reason: helm.ReasonUnreachable, Message: "no route"}
	f.run()
	f.want(v1alpha1.ConditionReleased, no, v1alpha1.ReasonClusterUnreachable)
	f.cluster.lost = &helm.Error{Reason: helm.ReasonForbidden, Message: "may not list"}
	f.wantTriedSoon("may not list")
	f.cluster.lost = nil
	f.charts.Close()
	f.pass(time.Hour)
	f.run()
	f.want(v1alpha1.ConditionChartFetched, no, v1alpha1.ReasonRepositoryUnreachable)
	f.wantActions(helm.ActionInstall)
}

// wantTriedSoon reconciles, and fails unless something that is forbidden is waited for, and tried again within a minute.
func (f *fixture) wantTriedSoon(words string) {
	f.t.Helper()

	if after := f.run().RequeueAfter; after <= 0 || after > time.Minute {
		f.t.Errorf("it is tried again after %s, want a minute at most", after)
	}

	message := f.want(v1alpha1.ConditionReconciling, yes, v1alpha1.ReasonForbidden)
	if !strings.Contains(message, words) || !strings.Contains(message, "tried again every minute") || !strings.Contains(message, v1alpha1.AnnotationReconcileRequestedAt) {
		f.t.Error(message)
	}
}

// A release that is there before the rights of its kubeconfig waits for them, and a second run writes nothing.
func TestAReleaseBeforeItsRights(t *testing.T) {
	f := newFixture(t)
	f.cluster.lost = &helm.Error{Reason: helm.ReasonForbidden, Message: "may not list"}
	f.wantTriedSoon("may not list")

	before := f.get().ResourceVersion

	f.wantTriedSoon("may not list")

	if after := f.get().ResourceVersion; after != before {
		t.Error("a second run writes the status again")
	}

	f.wantActions()
	f.cluster.lost = nil
	f.settle()
	f.wantActions(helm.ActionInstall)
}

// A template that never ends keeps one processor busy, not one for each attempt.
func TestAnEndlessTemplate(t *testing.T) {
	f := newFixture(t)
	still := make(chan struct{})
	f.cluster.fail = &helm.Error{Reason: helm.ReasonTimeout, Message: "Helm does not return", Still: still}
	f.settle()
	f.pass(time.Hour)
	f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.Chart.Values = &v1alpha1.FreeForm{Raw: []byte(`{"a":1}`)} })
	f.settle()
	f.wantActions(helm.ActionInstall)

	if message := f.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonActionFailed); !strings.Contains(message, "does not return") || !strings.Contains(message, "restart the controller") {
		t.Error(message)
	}

	f.cluster.fail = nil
	close(still)

	for name := client.ObjectKeyFromObject(f.get()); ; time.Sleep(time.Millisecond) {
		if _, stuck := f.r.runner.stuck(name); !stuck {
			break
		}
	}

	f.settle()
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
}

// One interruption is begun again at once. What is interrupted every time is a failure that lasts: it is told, with
// pauses, and holds a deletion up for no longer than other failures.
func TestInterruptionsThatLast(t *testing.T) {
	f := newFixture(t)
	f.cluster.refuse = &helm.Error{Reason: helm.ReasonInterrupted, Message: "somebody else made revision 1"}

	f.settle()
	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionInstall)

	if message := f.want(v1alpha1.ConditionReleased, no, v1alpha1.ReasonActionFailed); !strings.Contains(message, "somebody else made revision 1") {
		t.Error(message)
	}

	f.pass(31 * time.Second)
	f.settle()
	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionInstall, helm.ActionInstall)

	f.cluster.refuse = nil
	f.pass(5 * time.Minute)
	f.settle()
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)

	f.cluster.refuse = &helm.Error{Reason: helm.ReasonInterrupted, Message: "somebody else removed revision 1"}

	if err := f.client.Delete(t.Context(), f.get()); err != nil {
		t.Fatal(err)
	}

	f.pass(time.Since(f.now()) + 2*time.Hour)
	f.settle()
	f.settle()

	if err := f.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "app"}, &v1alpha1.OmniHelmRelease{}); !apierrors.IsNotFound(err) {
		t.Fatalf("the object is there: %v", err)
	}

	if text := f.said(); !strings.Contains(text, "somebody else removed revision 1") {
		t.Errorf("events: %s", text)
	}
}

// Tests of which no result can be noted are not run for ever, and are run again when somebody asks for it.
func TestTestsThatCannotBeNoted(t *testing.T) {
	f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) { r.Spec.Test.Enable, r.Spec.Retries = true, new(int32(1)) })
	f.run()
	f.run()
	f.cluster.refuse = &helm.Error{Reason: helm.ReasonForbidden, Message: "may not write revision 1"}

	for range 5 {
		f.settle()
		f.pass(10 * time.Minute)
	}

	f.wantActions(helm.ActionInstall, helm.ActionTest, helm.ActionTest)

	if message := f.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonForbidden); !strings.Contains(message, "may not write revision 1") ||
		!strings.Contains(message, v1alpha1.AnnotationReconcileRequestedAt) {
		t.Error(message)
	}

	f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.Test.IgnoreFailures = true })
	f.settle()
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonForbidden)

	f.cluster.refuse = nil
	f.edit(func(r *v1alpha1.OmniHelmRelease) {
		r.Annotations = map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "now"}
	})
	f.settle()
	f.want(v1alpha1.ConditionTested, yes, v1alpha1.ReasonTestsPassed)
}

// A cluster that cannot be reached says nothing about the tests.
func TestTestsOfAClusterThatIsAway(t *testing.T) {
	f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) { r.Spec.Test.Enable, r.Spec.Retries = true, new(int32(0)) })
	f.run()
	f.run()
	f.cluster.refuse = &helm.Error{Reason: helm.ReasonUnreachable, Message: "no route"}

	for range 3 {
		f.settle()
		f.pass(10 * time.Minute)
	}

	f.want(v1alpha1.ConditionTested, no, v1alpha1.ReasonClusterUnreachable)
	f.cluster.refuse = nil
	f.settle()
	f.want(v1alpha1.ConditionTested, yes, v1alpha1.ReasonTestsPassed)
}
