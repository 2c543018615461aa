package omnihelmrelease

import (
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
	"omni.texashpc.com/omni-cluster-operator/test/await"
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

// queued lets an install wait for the only slot of its cluster, until free is called.
func (f *fixture) queued() (free func()) {
	f.t.Helper()
	f.run()

	free = f.hold()
	f.look()

	if _, waiting := f.r.runner.load(); waiting != 1 || f.r.runner.job("uid-of-app").running() {
		f.t.Fatalf("%d wait", waiting)
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

func (f *fixture) waitUntilEnded() {
	f.t.Helper()

	await.Until(f.t, "the action ends", func() bool { return !f.r.runner.job("uid-of-app").running() })
}

// A release that waits for its turn says so, writes nothing more meanwhile, and is woken when its turn has come.
func TestAReleaseThatWaitsForItsTurn(t *testing.T) {
	f := newFixture(t)
	woken := make(chan struct{}, 2)
	f.r.runner.wake = func(types.NamespacedName) { woken <- struct{}{} }
	free := f.queued()

	if message := f.want(v1alpha1.ConditionReleased, no, v1alpha1.ReasonProgressing); !strings.Contains(message, "install of release default/app waits for its turn") {
		t.Error(message)
	}

	before := f.get().ResourceVersion

	f.pass(time.Minute)
	f.look()

	if after := f.get().ResourceVersion; after != before {
		t.Error("another run has written something")
	}

	free()
	<-woken
	f.wantActions()
	f.look()
	<-woken
	f.wantActions(helm.ActionInstall)
}

// What is begun when the turn has come is what is wanted then, in the cluster that is named then.
func TestAReleaseIsDecidedWhenItsTurnHasCome(t *testing.T) {
	for name, test := range map[string]struct {
		change func(f *fixture)
		values string // empty: nothing is begun
		frees  bool   // it needs no slot of the old cluster
	}{
		"other values":             {change: func(f *fixture) { f.edit(withValues(`{"word":"new"}`)) }, values: "word: new"},
		"another Secret of values": {change: func(f *fixture) { f.writeWords("new") }, values: "word: new"},
		"another cluster": {change: func(f *fixture) {
			f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.ClusterRef.Name = "another" })
		}, values: "word: old", frees: true},
		"suspended":            {change: func(f *fixture) { f.edit(suspend(true)) }},
		"the chart is missing": {change: func(f *fixture) { f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.Chart.Version = "9.9.9" }) }},
		"the cluster may not be used": {change: func(f *fixture) {
			f.access.outcome = loop.Stall(v1alpha1.ReasonWrongCluster, "it is another one")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) {
				r.Spec.Chart.ValuesFrom = []v1alpha1.HelmValuesReference{{Kind: v1alpha1.ValuesSecret, Name: "words"}}
			})
			f.writeWords("old")

			free := f.queued()

			test.change(f)

			if !test.frees {
				f.look()
				f.wantActions()
				free()
			}

			f.settle()

			if test.values == "" {
				f.wantActions()
			} else if f.wantActions(helm.ActionInstall); f.cluster.values.Digest() != digestOf(t, test.values) {
				t.Errorf("it was installed with other values than %s", test.values)
			}

			free()

			// Of another cluster the old place is given up in its turn.
			if taken, waiting := f.r.runner.load(); (taken != 0 || waiting != 0) && !test.frees {
				t.Errorf("%d slots are taken, and %d wait", taken, waiting)
			}
		})
	}
}

// What changed while an action waited for its chart, the action sees before it begins.
func TestAnActionReadsAgainWhatItWasDecidedFrom(t *testing.T) {
	for name, change := range map[string]func(f *fixture){
		"the spec": func(f *fixture) { f.edit(withValues(`{"word":"new"}`)) },
		"values":   func(f *fixture) { f.writeWords("new") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) {
				r.Spec.Chart.ValuesFrom = []v1alpha1.HelmValuesReference{{Kind: v1alpha1.ValuesSecret, Name: "words"}}
			})
			f.writeWords("old")
			f.run()

			charts := f.r.charts
			f.r.charts = &editing{charts, func() { change(f) }}
			f.look()
			f.waitUntilEnded()
			f.wantActions()

			if err := f.r.runner.job("uid-of-app").err; !errors.Is(err, errWithdrawn) {
				t.Errorf("it ended with %v", err)
			}

			f.r.charts = charts
			f.settle()
			f.settle()
			f.wantActions(helm.ActionInstall)

			if got := f.cluster.values.Digest(); got != digestOf(t, "word: new") {
				t.Error("it was installed with other values")
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
