package helmlive

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/kubeclient"
)

// giveAway writes the marks of another release on a ConfigMap, and other data.
func (r *release) giveAway(name, another string) {
	r.t.Helper()

	taken := r.configMap(name)
	if taken.Annotations == nil {
		taken.Annotations = map[string]string{}
	}

	taken.Annotations["meta.helm.sh/release-name"] = another
	taken.Data = map[string]string{"of": another}

	if _, err := cluster.Client().CoreV1().ConfigMaps(r.namespace).Update(r.t.Context(), taken, metav1.UpdateOptions{FieldManager: "another"}); err != nil {
		r.t.Fatal(err)
	}
}

// make makes a ConfigMap of somebody else, a second before what comes next.
func (r *release) make(name string) {
	r.t.Helper()

	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := cluster.Client().CoreV1().ConfigMaps(r.namespace).Create(r.t.Context(), theirs, metav1.CreateOptions{FieldManager: "somebody"}); err != nil {
		r.t.Fatal(err)
	}

	time.Sleep(1100 * time.Millisecond) // the server notes seconds
}

// wantKept fails unless the last note is of objects that were kept, and names these only.
func (r *release) wantKept(words ...string) {
	r.t.Helper()

	if len(r.notes) == 0 || !strings.HasPrefix(r.notes[len(r.notes)-1], "ObjectsKept: ") {
		r.t.Errorf("told %q", r.notes)

		return
	}

	for _, word := range words {
		if !strings.Contains(r.notes[len(r.notes)-1], word) {
			r.t.Errorf("%q does not say %q", r.notes[len(r.notes)-1], word)
		}
	}
}

// What a failed revision took over was there before it, and outlasts the rollback.
func TestARollbackKeepsWhatWasTakenOver(t *testing.T) {
	r := newRelease(t)
	r.wanted.RollBack, r.settings.TakeOwnership = true, true
	r.want(helm.ActionInstall, chartOf("1.0.0", configMap("one")), "")
	r.make("theirs")

	next := chartOf("2.0.0", configMap("one")+configMap("theirs")+configMap("made")+notValid)

	for range 2 { // in the second attempt the object has the marks of the release already
		r.wantError(helm.ActionUpgrade, next, "", helm.ReasonFailed, "Not-Valid")

		if !r.has("made") {
			t.Fatal("the attempt failed before it made anything")
		}

		r.want(helm.ActionRollback, next, "")
		r.wantKept("ConfigMap "+r.namespace+"/theirs", "took them over")

		if !r.has("theirs") || r.has("made") || !r.has("one") {
			t.Errorf("there are theirs %v, made %v, one %v", r.has("theirs"), r.has("made"), r.has("one"))
		}
	}
}

// An upgrade over a failed install removes what that made, and not what it took over.
func TestAnUpgradeKeepsWhatAFailedInstallTookOver(t *testing.T) {
	r := newRelease(t)
	r.settings.TakeOwnership = true

	if err := cluster.CreateNamespace(t.Context(), r.namespace); err != nil {
		t.Fatal(err)
	}

	r.make("theirs")
	r.wantError(helm.ActionInstall, chartOf("1.0.0", configMap("theirs")+configMap("made")+notValid), "", helm.ReasonFailed, "Not-Valid")
	r.want(helm.ActionUpgrade, chartOf("2.0.0", configMap("one")), "")
	r.wantKept("ConfigMap "+r.namespace+"/theirs", "took them over")

	if !r.has("theirs") || r.has("made") || !r.has("one") {
		t.Errorf("there are theirs %v, made %v, one %v", r.has("theirs"), r.has("made"), r.has("one"))
	}
}

// An object that another release has by now is not removed when the chart drops it.
func TestAnUpgradeLeavesWhatIsNotItsOwn(t *testing.T) {
	r := newRelease(t)
	r.want(helm.ActionInstall, chartOf("1.0.0", configMap("moved")+configMap("dropped")+configMap("one")), "")
	r.giveAway("moved", "another")
	r.want(helm.ActionUpgrade, chartOf("2.0.0", configMap("one")), "")
	r.wantKept("ConfigMap "+r.namespace+"/moved", "marks of this release")

	if !r.has("moved") || r.has("dropped") || !r.has("one") {
		t.Errorf("there are moved %v, dropped %v, one %v", r.has("moved"), r.has("dropped"), r.has("one"))
	}
}

// Nor is one written that another release has by now.
func TestAnUpgradeDoesNotTakeWhatAnotherReleaseHas(t *testing.T) {
	r := newRelease(t)
	r.want(helm.ActionInstall, chartOf("1.0.0", configMap("moved")+"data: {of: demo}\n"), "")
	r.giveAway("moved", "another")

	next := chartOf("2.0.0", configMap("moved")+"data: {of: demo}\n"+configMap("one"))
	r.wantError(helm.ActionUpgrade, next, "", helm.ReasonFailed, "ConfigMap "+r.namespace+"/moved belongs to Helm release "+r.namespace+"/another")

	if got := r.configMap("moved").Data["of"]; got != "another" || r.has("one") {
		t.Errorf("the object of the other release says %q; one is there %v", got, r.has("one"))
	}

	r.settings.TakeOwnership = true
	r.want(helm.ActionUpgrade, next, "")

	if got := r.configMap("moved").Data["of"]; got != "demo" {
		t.Errorf("the object that was taken over says %q", got)
	}
}

// What a failed upgrade has dropped, and somebody made since, is not written over by the rollback.
func TestARollbackDoesNotTakeWhatOthersMade(t *testing.T) {
	r := newRelease(t)
	r.wanted.RollBack = true
	r.want(helm.ActionInstall, chartOf("1.0.0", configMap("dropped")+"data: {of: demo}\n"+configMap("moved")+"data: {of: demo}\n"+configMap("one")), "")

	next := chartOf("2.0.0", configMap("one")+notValid)
	r.wantError(helm.ActionUpgrade, next, "", helm.ReasonFailed, "Not-Valid")

	for _, name := range []string{"dropped", "moved"} { // as an upgrade that waits has done it
		if err := cluster.Client().CoreV1().ConfigMaps(r.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}

		r.make(name)
	}

	r.giveAway("moved", "another")
	r.wantError(helm.ActionRollback, next, "", helm.ReasonFailed, "no object was changed", "ConfigMap "+r.namespace+"/")

	if dropped, moved := r.configMap("dropped").Data["of"], r.configMap("moved").Data["of"]; dropped != "" || moved != "another" {
		t.Errorf("dropped is of %q, moved of %q", dropped, moved)
	}
}

// Whose an object is has to be known before it is removed.
func TestAnUpgradeThatCannotSeeAnObject(t *testing.T) {
	var o outage

	r := newReleaseFor(t, o.of(cluster.RESTConfig()))
	r.want(helm.ActionInstall, chartOf("1.0.0", configMap("dropped")), "")

	next := chartOf("2.0.0", configMap("one"))

	o.begin(http.MethodGet, "/configmaps/dropped")
	r.wantError(helm.ActionUpgrade, next, "", helm.ReasonFailed, "ConfigMap "+r.namespace+"/dropped", "cannot be told")
	o.end()

	if !r.has("dropped") || r.has("one") {
		t.Errorf("there are dropped %v, one %v", r.has("dropped"), r.has("one"))
	}

	r.want(helm.ActionUpgrade, next, "")

	if r.has("dropped") || !r.has("one") {
		t.Errorf("there are dropped %v, one %v", r.has("dropped"), r.has("one"))
	}
}

// Helm skips what it cannot read when it is to remove it. Without a revision that failed nobody would know of it.
func TestAnUpgradeThatCannotSeeAnObjectLater(t *testing.T) {
	var o outage

	r := newReleaseFor(t, o.of(cluster.RESTConfig()))
	r.want(helm.ActionInstall, chartOf("1.0.0", configMap("dropped")), "")

	next := chartOf("2.0.0", configMap("one"))

	o.beginAfter(1, http.MethodGet, "/configmaps/dropped")
	r.wantError(helm.ActionUpgrade, next, "", helm.ReasonFailed, "ConfigMap "+r.namespace+"/dropped", "was not removed")
	o.end()

	if !r.has("dropped") || !r.has("one") {
		t.Errorf("there are dropped %v, one %v", r.has("dropped"), r.has("one"))
	}

	r.want(helm.ActionUpgrade, next, "")

	if r.has("dropped") || !r.has("one") {
		t.Errorf("there are dropped %v, one %v", r.has("dropped"), r.has("one"))
	}
}

// Two releases never take turns with an object; one without marks is taken back.
func TestDriftLeavesWhatIsAnotherReleases(t *testing.T) {
	r := newRelease(t)
	r.want(helm.ActionInstall, chartOf("1.0.0", configMap("moved")+"data: {of: demo}\n"+configMap("bare")+"data: {of: demo}\n"), "")
	r.giveAway("moved", "another")

	bare := r.configMap("bare")
	bare.Annotations, bare.Data = nil, map[string]string{"of": "nobody"}

	if _, err := cluster.Client().CoreV1().ConfigMaps(r.namespace).Update(t.Context(), bare, metav1.UpdateOptions{FieldManager: "kubectl"}); err != nil {
		t.Fatal(err)
	}

	found, err := r.client.Correct(t.Context(), 1, nil, mayBegin)
	if err != nil || len(found) != 2 {
		t.Fatalf("%v, %v", found, err)
	}

	left := strings.Join(texts(found), "; ")
	if want := "ConfigMap " + r.namespace + "/moved belongs to Helm release " + r.namespace + "/another"; !strings.Contains(left, want) {
		t.Errorf("%q does not say %q", left, want)
	}

	if got := r.configMap("moved"); got.Data["of"] != "another" || got.Annotations["meta.helm.sh/release-name"] != "another" {
		t.Errorf("the object of the other release says %v, %v", got.Data, got.Annotations)
	}

	if got := r.configMap("bare").Data["of"]; got != "demo" {
		t.Errorf("the object without marks says %q", got)
	}
}

// byHand is a configuration of Helm of another client's.
func (r *release) byHand() *action.Configuration {
	r.t.Helper()

	clients, err := kubeclient.NewGetter(cluster.RESTConfig(), r.namespace)
	if err != nil {
		r.t.Fatal(err)
	}

	config := action.NewConfiguration()
	if err := config.Init(clients, r.namespace, "secret"); err != nil {
		r.t.Fatal(err)
	}

	return config
}

// uninstallByHand does what helm uninstall --keep-history does.
func (r *release) uninstallByHand() {
	r.t.Helper()

	uninstall := action.NewUninstall(r.byHand())
	uninstall.KeepHistory, uninstall.Timeout, uninstall.WaitStrategy = true, 10*time.Second, kube.HookOnlyStrategy

	if _, err := uninstall.Run("demo"); err != nil {
		r.t.Fatal(err)
	}
}

// A rollback never brings back what was uninstalled with its history.
func TestWhatWasUninstalledDoesNotComeBack(t *testing.T) {
	r := newRelease(t)
	r.wanted.RollBack = true
	r.want(helm.ActionInstall, chartOf("1.0.0", configMap("removed")), "")
	r.uninstallByHand()

	next := chartOf("2.0.0", configMap("one")+notValid)
	r.wantError(helm.ActionInstall, next, "", helm.ReasonFailed, "Not-Valid")
	r.wantError(helm.ActionInstall, next, "", helm.ReasonFailed, "Not-Valid")
	r.want(helm.ActionStall, next, "")

	if diff := cmp.Diff([]string{"3 failed", "2 failed", "1 uninstalled"}, r.numbers()); diff != "" {
		t.Error(diff)
	}

	r.want(helm.ActionUpgrade, chartOf("3.0.0", configMap("one")), "")

	if r.has("removed") || !r.has("one") {
		t.Errorf("there are removed %v, one %v", r.has("removed"), r.has("one"))
	}
}
