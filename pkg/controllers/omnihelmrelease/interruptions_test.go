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

// said are all events so far.
func (b *bench) said() string {
	var texts []string

	for {
		select {
		case text := <-b.events.Events:
			texts = append(texts, text)
		default:
			return strings.Join(texts, "\n")
		}
	}
}

func TestADeletionInterruptsWhatIsUnderWay(t *testing.T) {
	b := newBench(t)
	b.run()
	b.cluster.hold = make(chan struct{})
	b.look()
	b.want(v1alpha1.ConditionReconciling, yes, v1alpha1.ReasonProgressing)

	if err := b.client.Delete(t.Context(), b.get()); err != nil {
		t.Fatal(err)
	}

	b.look()
	b.cluster.mu.Lock()
	b.cluster.hold = nil
	b.cluster.mu.Unlock()
	b.settle()
	b.settle()

	if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "app"}, &v1alpha1.OmniHelmRelease{}); !apierrors.IsNotFound(err) {
		t.Fatalf("the object is there: %v", err)
	}
}

func TestAnUninstallKnowsWhatToKeepSecret(t *testing.T) {
	b := newBench(t, func(r *v1alpha1.OmniHelmRelease) {
		r.Spec.Chart.ValuesFrom = []v1alpha1.HelmValuesReference{{Kind: v1alpha1.ValuesSecret, Name: "words", Key: "word", TargetPath: "word"}}
	})

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "words"}, Data: map[string][]byte{"word": []byte("canary")}}
	if err := b.client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}

	b.settle()
	b.restart()

	if err := b.client.Delete(t.Context(), b.get()); err != nil {
		t.Fatal(err)
	}

	b.settle()
	b.wantActions(helm.ActionInstall, helm.ActionUninstall)

	if got := b.cluster.values.Redact("the canary is refused"); got != "the [removed] is refused" {
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
			b := newBench(t)
			run := b.r.action(&scope{
				release: b.get(), engine: b.cluster, decision: helm.Decision{Action: helm.ActionUninstall},
				observed: &helm.Observed{Revisions: []helm.Revision{{Number: 1, Owner: "uid-of-app"}}},
			})

			b.pass(test.waited)
			b.cluster.revisions = test.found

			if err := run(t.Context()); interrupted(err) != (test.want == nil) {
				t.Errorf("it ended with %v", err)
			}

			b.wantActions(test.want...)
		})
	}
}

func TestOutages(t *testing.T) {
	b := newBench(t)
	b.settle()
	b.cluster.lost = &helm.Error{Reason: helm.ReasonUnreachable, Message: "no route"}
	b.run()
	b.want(v1alpha1.ConditionReleased, no, v1alpha1.ReasonClusterUnreachable)
	b.cluster.lost = &helm.Error{Reason: helm.ReasonForbidden, Message: "may not list"}
	b.run()
	b.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonForbidden)
	b.cluster.lost = nil
	b.charts.Close()
	b.pass(time.Hour)
	b.run()
	b.want(v1alpha1.ConditionChartFetched, no, v1alpha1.ReasonRepositoryUnreachable)
	b.wantActions(helm.ActionInstall)
}

// Suspend takes back what waits for its turn.
func TestSuspendStopsAQueuedAction(t *testing.T) {
	b := newBench(t)
	b.run()

	// The only slot of the cluster.
	free, err := b.r.runner.limiter.Acquire(t.Context(), clusterOf(b.get()), 1)
	if err != nil {
		t.Fatal(err)
	}

	b.look()
	b.want(v1alpha1.ConditionReconciling, yes, v1alpha1.ReasonProgressing)
	b.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.Suspend = true })
	b.run()
	free()
	b.run()
	b.wantActions()
	b.want(v1alpha1.ConditionSuspended, yes, v1alpha1.ReasonSuspended)
}

// A template that never ends keeps one processor busy, not one for each attempt.
func TestAnEndlessTemplate(t *testing.T) {
	b := newBench(t)
	still := make(chan struct{})
	b.cluster.fail = &helm.Error{Reason: helm.ReasonTimeout, Message: "Helm does not return", Still: still}
	b.settle()
	b.pass(time.Hour)
	b.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.Chart.Values = &v1alpha1.FreeForm{Raw: []byte(`{"a":1}`)} })
	b.settle()
	b.wantActions(helm.ActionInstall)

	if message := b.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonActionFailed); !strings.Contains(message, "does not return") || !strings.Contains(message, "restart the controller") {
		t.Error(message)
	}

	b.cluster.fail = nil
	close(still)

	for name := client.ObjectKeyFromObject(b.get()); ; time.Sleep(time.Millisecond) {
		if _, stuck := b.r.runner.stuck(name); !stuck {
			break
		}
	}

	b.settle()
	b.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
}

// One interruption is begun again at once. What is interrupted every time is a failure that lasts: it is told, with
// pauses, and holds a deletion up for no longer than other failures.
func TestInterruptionsThatLast(t *testing.T) {
	b := newBench(t)
	b.cluster.refuse = &helm.Error{Reason: helm.ReasonInterrupted, Message: "somebody else made revision 1"}

	b.settle()
	b.settle()
	b.wantActions(helm.ActionInstall, helm.ActionInstall)

	if message := b.want(v1alpha1.ConditionReleased, no, v1alpha1.ReasonActionFailed); !strings.Contains(message, "somebody else made revision 1") {
		t.Error(message)
	}

	b.pass(31 * time.Second)
	b.settle()
	b.settle()
	b.wantActions(helm.ActionInstall, helm.ActionInstall, helm.ActionInstall)

	b.cluster.refuse = nil
	b.pass(5 * time.Minute)
	b.settle()
	b.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)

	b.cluster.refuse = &helm.Error{Reason: helm.ReasonInterrupted, Message: "somebody else removed revision 1"}

	if err := b.client.Delete(t.Context(), b.get()); err != nil {
		t.Fatal(err)
	}

	b.pass(time.Since(b.now()) + 2*time.Hour)
	b.settle()
	b.settle()

	if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "app"}, &v1alpha1.OmniHelmRelease{}); !apierrors.IsNotFound(err) {
		t.Fatalf("the object is there: %v", err)
	}

	if text := b.said(); !strings.Contains(text, "somebody else removed revision 1") {
		t.Errorf("events: %s", text)
	}
}

// Tests of which no result can be noted are not run for ever, and are run again when somebody asks for it.
func TestTestsThatCannotBeNoted(t *testing.T) {
	b := newBench(t, func(r *v1alpha1.OmniHelmRelease) { r.Spec.Test.Enable, r.Spec.Retries = true, new(int32(1)) })
	b.run()
	b.run()
	b.cluster.refuse = &helm.Error{Reason: helm.ReasonForbidden, Message: "may not write revision 1"}

	for range 5 {
		b.settle()
		b.pass(10 * time.Minute)
	}

	b.wantActions(helm.ActionInstall, helm.ActionTest, helm.ActionTest)

	if message := b.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonForbidden); !strings.Contains(message, "may not write revision 1") ||
		!strings.Contains(message, v1alpha1.AnnotationReconcileRequestedAt) {
		t.Error(message)
	}

	b.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.Test.IgnoreFailures = true })
	b.settle()
	b.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonForbidden)

	b.cluster.refuse = nil
	b.edit(func(r *v1alpha1.OmniHelmRelease) {
		r.Annotations = map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "now"}
	})
	b.settle()
	b.want(v1alpha1.ConditionTested, yes, v1alpha1.ReasonTestsPassed)
}

// A cluster that cannot be reached says nothing about the tests.
func TestTestsOfAClusterThatIsAway(t *testing.T) {
	b := newBench(t, func(r *v1alpha1.OmniHelmRelease) { r.Spec.Test.Enable, r.Spec.Retries = true, new(int32(0)) })
	b.run()
	b.run()
	b.cluster.refuse = &helm.Error{Reason: helm.ReasonUnreachable, Message: "no route"}

	for range 3 {
		b.settle()
		b.pass(10 * time.Minute)
	}

	b.want(v1alpha1.ConditionTested, no, v1alpha1.ReasonClusterUnreachable)
	b.cluster.refuse = nil
	b.settle()
	b.want(v1alpha1.ConditionTested, yes, v1alpha1.ReasonTestsPassed)
}
