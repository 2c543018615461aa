package omnihelmrelease

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// hold takes the only slot of the cluster, until free is called.
func (f *fixture) hold() (free func()) {
	f.t.Helper()

	free, err := f.r.runner.limiter.Acquire(f.t.Context(), clusterOf(f.get()), 1)
	if err != nil {
		f.t.Fatal(err)
	}

	return free
}

// queued begins an install that waits for the only slot of its cluster, until free is called.
func (f *fixture) queued() (free func()) {
	f.t.Helper()
	f.run()

	free = f.hold()
	f.look()

	if !f.r.runner.job("uid-of-app").running() {
		f.t.Fatal("nothing waits")
	}

	return free
}

// digestOf is the digest of one layer of values.
func digestOf(t *testing.T, text string) string {
	t.Helper()

	merged, err := values.Merge(t.Context(), []values.Layer{{Text: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}

	return merged.Digest()
}

// writeWords makes Secret words say this.
func (f *fixture) writeWords(word string) {
	f.t.Helper()

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "words"}, Data: map[string][]byte{"values.yaml": []byte("word: " + word)}}

	err := f.client.Update(f.t.Context(), secret)
	if err != nil {
		err = f.client.Create(f.t.Context(), secret)
	}

	if err != nil {
		f.t.Fatal(err)
	}
}

// await waits until something is so, and fails with otherwise if it never is.
func (f *fixture) await(otherwise string, so func() bool) {
	f.t.Helper()

	for deadline := time.Now().Add(10 * time.Second); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatal(otherwise)
		}
	}
}

func (f *fixture) waitUntilEnded() {
	f.t.Helper()

	f.await("the action goes on", func() bool { return !f.r.runner.job("uid-of-app").running() })
}

// What waits for its turn says so, and that it was begun when its turn has come.
func TestAQueuedActionSaysThatItWaits(t *testing.T) {
	f := newFixture(t)
	woken := make(chan struct{}, 2)
	f.r.runner.wake = func(types.NamespacedName) { woken <- struct{}{} }
	free := f.queued()

	if message := f.want(v1alpha1.ConditionReleased, no, v1alpha1.ReasonProgressing); !strings.Contains(message, "install of release default/app waits for its turn since 2026-11-21") {
		t.Error(message)
	}

	f.cluster.hold = make(chan struct{})
	f.pass(time.Hour)
	free()
	<-woken
	f.look()

	if message := f.want(v1alpha1.ConditionReleased, no, v1alpha1.ReasonProgressing); !strings.Contains(message, "was begun at 2026-11-21T13:00:00Z") {
		t.Error(message)
	}

	close(f.cluster.hold)
	<-woken
}

// One that does not return is told as begun when its turn had come.
func TestAQueuedActionThatDoesNotReturn(t *testing.T) {
	f := newFixture(t)
	f.cluster.fail = &helm.Error{Reason: helm.ReasonTimeout, Message: "Helm does not return", Still: make(chan struct{})}
	free := f.queued()
	f.pass(time.Hour)
	free()
	f.await("the action goes on", func() bool { return !f.r.runner.job("uid-of-app").running() })
	f.look()

	if message := f.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonActionFailed); !strings.Contains(message, "begun at 2026-11-21T13:00:00Z, does not return") {
		t.Error(message)
	}
}

// What waits for its turn is not begun once something else is wanted, and does not keep that from being begun.
func TestAQueuedActionIsReplaced(t *testing.T) {
	ofWords := func(r *v1alpha1.OmniHelmRelease) {
		r.Spec.Chart.ValuesFrom = []v1alpha1.HelmValuesReference{{Kind: v1alpha1.ValuesSecret, Name: "words"}}
	}

	for name, test := range map[string]struct {
		change func(f *fixture)
		values string
		frees  bool // the new action needs no slot of the old one
	}{
		"nothing changes": {change: func(*fixture) {}, values: "word: old"},
		"other values": {change: func(f *fixture) {
			f.edit(func(r *v1alpha1.OmniHelmRelease) {
				r.Spec.Chart.Values = &v1alpha1.FreeForm{Raw: []byte(`{"word":"new"}`)}
			})
		}, values: "word: new"},
		"another Secret of values": {change: func(f *fixture) { f.writeWords("new") }, values: "word: new"},
		"another cluster": {change: func(f *fixture) {
			f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.ClusterRef.Name = "another" })
		}, values: "word: old", frees: true},
		"another kubeconfig": {change: func(f *fixture) { f.access.kubeconfig = "another" }, values: "word: old"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, ofWords)
			f.writeWords("old")

			free := f.queued()
			before := f.r.runner.job("uid-of-app")

			test.change(f)
			f.look()

			if same := name == "nothing changes"; !same {
				f.waitUntilEnded()
			} else if now := f.r.runner.job("uid-of-app"); !now.running() || now.inputs != before.inputs {
				t.Errorf("what is still wanted was taken back: %+v", now)
			}

			f.look() // the new spec is noted
			f.look()

			if !test.frees {
				f.wantActions()
				free()
			}

			f.waitUntilEnded()
			f.settle()
			f.wantActions(helm.ActionInstall)

			if got := f.cluster.values.Digest(); got != digestOf(t, test.values) {
				t.Errorf("it was installed with other values than %s", test.values)
			}

			f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
			free()
		})
	}
}

// What replaces it may be impossible: the old action is not begun for that.
func TestAQueuedActionIsWithdrawn(t *testing.T) {
	for name, test := range map[string]struct {
		change func(f *fixture)
		want   []helm.Action
	}{
		"the chart is missing": {change: func(f *fixture) {
			f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.Chart.Version = "9.9.9" })
		}},
		"the values are missing": {change: func(f *fixture) {
			f.edit(func(r *v1alpha1.OmniHelmRelease) {
				r.Spec.Chart.ValuesFrom = []v1alpha1.HelmValuesReference{{Kind: v1alpha1.ValuesSecret, Name: "words"}}
			})
		}},
		"the other cluster does not answer": {change: func(f *fixture) {
			f.access.outcome = loop.Wait(time.Minute, v1alpha1.ReasonClusterUnreachable, "no route")
			f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.ClusterRef.Name = "another" })
		}},
		"the cluster may not be used": {change: func(f *fixture) {
			f.access.outcome = loop.Stall(v1alpha1.ReasonWrongCluster, "it is another one")
		}},
		"the cluster does not answer": {change: func(f *fixture) {
			f.access.outcome = loop.Wait(time.Minute, v1alpha1.ReasonClusterUnreachable, "no route")
		}, want: []helm.Action{helm.ActionInstall}},
		"the cluster has no slot for a run": {change: func(f *fixture) {
			f.access.outcome = loop.Postpone(time.Minute, v1alpha1.ReasonProgressing, "others come first")
		}, want: []helm.Action{helm.ActionInstall}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			free := f.queued()

			test.change(f)
			f.look()

			if test.want == nil {
				f.waitUntilEnded()
			}

			free()
			f.waitUntilEnded()
			f.wantActions(test.want...)
		})
	}
}

// What never began was no attempt: nothing waits for a pause because of it.
func TestWhatIsWithdrawnDoesNotCount(t *testing.T) {
	r, ended := newTestRunner(1)
	release, begun := make(chan struct{}), make(chan struct{})

	r.add(testKey("a"), job{action: helm.ActionInstall}, func(context.Context) error { close(begun); <-release; return nil })
	<-begun

	for range 3 {
		r.add(testKey("b"), job{action: helm.ActionInstall, attempt: "B"}, func(context.Context) error { return nil })
		r.withdraw("b")
		<-ended
	}

	if found := r.job("b"); !interrupted(found.err) || found.failedInRow != 0 {
		t.Errorf("the job is %+v", found)
	}

	close(release)
	<-ended
}

// What changed while an action waited, and no run has seen yet, the action sees when its turn comes.
func TestAnActionReadsAgainWhatItWasDecidedFrom(t *testing.T) {
	for name, test := range map[string]struct {
		change func(f *fixture)
		values string
	}{
		"the spec": {func(f *fixture) {
			f.edit(func(r *v1alpha1.OmniHelmRelease) {
				r.Spec.Chart.Values = &v1alpha1.FreeForm{Raw: []byte(`{"word":"new"}`)}
			})
		}, "word: new"},
		"values": {func(f *fixture) { f.writeWords("new") }, "word: new"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) {
				r.Spec.Chart.ValuesFrom = []v1alpha1.HelmValuesReference{{Kind: v1alpha1.ValuesSecret, Name: "words"}}
			})
			f.writeWords("old")

			free := f.queued()

			test.change(f)
			free()
			f.waitUntilEnded()
			f.wantActions()

			if err := f.r.runner.job("uid-of-app").err; !errors.Is(err, errWithdrawn) {
				t.Errorf("it ended with %v", err)
			}

			f.settle()
			f.settle()
			f.wantActions(helm.ActionInstall)

			if got := f.cluster.values.Digest(); got != digestOf(t, test.values) {
				t.Errorf("it was installed with other values than %s", test.values)
			}
		})
	}
}

// Keys that changed while an action waited are those that its chart is checked with; it keeps its turn.
func TestAnActionReadsKeysAgain(t *testing.T) {
	ours, other := chartserver.NewSigner("ours"), chartserver.NewSigner("other")

	for name, test := range map[string]struct {
		trusted []*chartserver.Signer
		want    []helm.Action
	}{
		"one key more":        {[]*chartserver.Signer{ours, other}, []helm.Action{helm.ActionInstall}},
		"the key is replaced": {[]*chartserver.Signer{other}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, verified)
			f.sign(ours)
			f.trust(ours)

			free := f.queued()

			f.trust(test.trusted...)
			free()
			f.waitUntilEnded()
			f.wantActions(test.want...)

			if err := f.r.runner.job("uid-of-app").err; isChartError(err) != (test.want == nil) {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

// An error whose values are not those any more that it may repeat is not shown.
func TestAnErrorIsShownWithTheValuesItMayRepeat(t *testing.T) {
	f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) {
		r.Spec.Chart.ValuesFrom = []v1alpha1.HelmValuesReference{{Kind: v1alpha1.ValuesSecret, Name: "words"}}
	})
	f.writeWords("canary")

	merged, err := f.r.values(t.Context(), f.get())
	if err != nil {
		t.Fatal(err)
	}

	refused := &helm.Error{Reason: helm.ReasonForbidden, Message: "the canary is refused"}
	from := basisOf(&scope{release: f.get(), values: merged})

	if got := f.r.redactAgain(refused, from); got.Error() != "the [removed] is refused" || failureReason(got) != v1alpha1.ReasonForbidden {
		t.Errorf("got %v", got)
	}

	if got := f.r.redactAgain(helm.ErrRevisionGone, from); !errors.Is(got, helm.ErrRevisionGone) {
		t.Errorf("got %v", got)
	}

	f.writeWords("another")

	if got := f.r.redactAgain(refused, from); strings.Contains(got.Error(), "canary") || failureReason(got) != v1alpha1.ReasonForbidden {
		t.Errorf("got %v", got)
	}
}
