package omnihelmrelease

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// waiting is how many releases wait for one slot.
var waiting = foreigntest.AtOnce(40)

// waitingBytes is what they may hold together. Each of them reads about 2 MiB of values, or a keyring of 1 MiB.
const waitingBytes = 32 << 20

// manyReleases adds releases, each with a release of its own in the cluster, of which all read the same large ConfigMap
// of values and the same large keyring.
func manyReleases(t *testing.T, change func(*v1alpha1.OmniHelmRelease)) *fixture {
	t.Helper()

	f := newFixture(t)
	clusters := map[string]*cluster{}

	f.r.engine = func(_ *clusteraccess.Opened, _, name, _ string) engine {
		if clusters[name] == nil {
			clusters[name] = &cluster{now: f.now}
		}

		return clusters[name]
	}

	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", Name: name} }
	large := &corev1.ConfigMap{ObjectMeta: meta("large"), Data: map[string]string{"values.yaml": "a: [" + strings.Repeat(`{"b":12345678},`, 5_000) + "]"}}
	keyring := &corev1.Secret{ObjectMeta: meta("keys"), Data: map[string][]byte{"keyring": bytes.Repeat([]byte("k"), 1<<20)}}

	if err := f.client.Create(t.Context(), large); err != nil {
		t.Fatal(err)
	}

	if err := f.client.Create(t.Context(), keyring); err != nil {
		t.Fatal(err)
	}

	for i := range waiting {
		f.add(fmt.Sprint("large-", i), change)
	}

	return f
}

func largeValues(r *v1alpha1.OmniHelmRelease) {
	r.Spec.Chart.ValuesFrom = []v1alpha1.HelmValuesReference{{Kind: v1alpha1.ValuesConfigMap, Name: "large"}}
}

// wantLittle looks at each release until it waits, and fails if they hold much together then.
func (f *fixture) wantLittle(runs int, waits func(name string) bool) {
	f.t.Helper()

	foreigntest.WantPeak(f.t, waitingBytes, func() {
		for i := range waiting {
			name := fmt.Sprint("large-", i)

			for range runs {
				f.lookAt(name)
			}

			if !waits(name) {
				f.t.Fatalf("%s does not wait", name)
			}
		}
	})
}

// Releases that wait for their turn hold nothing.
func TestManyActionsThatWait(t *testing.T) {
	f := manyReleases(t, largeValues)
	free := f.hold()

	woken := make(chan string, waiting)
	f.r.runner.wake = func(name types.NamespacedName) { woken <- name.Name }

	seen := map[string]bool{}

	f.wantLittle(2, func(name string) bool {
		seen[name] = true
		_, waits := f.r.runner.load()

		return waits == len(seen)
	})
	free()

	for i := range waiting {
		name := fmt.Sprint("large-", i)

		for got := ""; got != name; got = <-woken { // those before it end
			continue
		}

		f.lookAt(name)

		for ; f.r.runner.job(types.UID("uid-of-" + name)).running(); time.Sleep(time.Millisecond) {
			continue
		}

		if found := f.r.runner.job(types.UID(fmt.Sprint("uid-of-large-", i))); found.err != nil || found.action != helm.ActionInstall {
			t.Errorf("%+v", found)
		}
	}
}

// The same of comparisons, whose errors may repeat values.
func TestManyComparisonsThatWait(t *testing.T) {
	f := manyReleases(t, func(r *v1alpha1.OmniHelmRelease) {
		largeValues(r)
		r.Spec.DriftDetection.Mode = v1alpha1.DriftWarn
	})

	free, err := f.r.drift.Options.Limiter.Acquire(t.Context(), clusterOf(f.get()), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer free()

	f.r.drift.Options.AnswerTimeout = time.Millisecond

	f.wantLittle(2, func(name string) bool {
		for f.r.runner.job(types.UID("uid-of-" + name)).running() {
			time.Sleep(time.Millisecond)
		}

		f.r.engine(nil, "", name, "").(*cluster).values = values.Values{}

		f.lookAt(name)

		return f.r.drift.Pending(types.NamespacedName{Namespace: "ns", Name: name})
	})
}

// The same of questions about charts, which need keyrings and certificate authorities.
func TestManyQuestionsThatWait(t *testing.T) {
	f := manyReleases(t, verified)

	source, err := f.r.source(t.Context(), f.get())
	if err != nil {
		t.Fatal(err)
	}

	free, err := f.r.found.Options.Limiter.Acquire(t.Context(), askedBy("ns", source.Host()), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer free()

	f.r.found.Options.AnswerTimeout = time.Millisecond

	foreigntest.WantPeak(t, waitingBytes, func() {
		for i := range waiting {
			f.lookAt(fmt.Sprint("large-", i))
		}
	})
}
