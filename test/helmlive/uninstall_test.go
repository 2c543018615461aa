package helmlive

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// has reports whether a ConfigMap is there.
func (r *release) has(name string) bool {
	r.t.Helper()

	_, err := cluster.Client().CoreV1().ConfigMaps(r.namespace).Get(r.t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		r.t.Fatal(err)
	}

	return err == nil
}

func configMap(name string) string {
	return "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n"
}

// Helm skips an object that it cannot read. Without its record nobody would know of it.
func TestAnUninstallThatCannotSeeAnObject(t *testing.T) {
	var o outage

	r := newReleaseFor(t, o.of(cluster.RESTConfig()))
	chart := chartOf("1.0.0", configMap("one")+configMap("two"))
	r.want(helm.ActionInstall, chart, "")

	r.wanted.Absent = true
	o.begin(http.MethodGet, "/configmaps/two")
	r.wantError(helm.ActionUninstall, chart, "", helm.ReasonFailed, "ConfigMap "+r.namespace+"/two", "records")

	if diff := cmp.Diff([]string{"1 uninstalling"}, r.numbers()); diff != "" {
		t.Error(diff)
	}

	o.end()
	r.want(helm.ActionUninstall, chart, "")

	if r.has("one") || r.has("two") || r.numbers() != nil {
		t.Errorf("left behind: one %v, two %v, %v", r.has("one"), r.has("two"), r.numbers())
	}
}

// What the chart keeps, and what is somebody else's by now, does not hold an uninstall up.
func TestAnUninstallLeavesWhatIsNotItsOwn(t *testing.T) {
	r := newRelease(t)
	chart := chartOf("1.0.0", configMap("kept")+"  annotations: {helm.sh/resource-policy: keep}\n"+configMap("taken")+configMap("own"))
	r.want(helm.ActionInstall, chart, "")

	taken := r.configMap("taken")
	taken.Annotations["meta.helm.sh/release-name"] = "another"

	if _, err := cluster.Client().CoreV1().ConfigMaps(r.namespace).Update(t.Context(), taken, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}

	r.wanted.Absent = true
	r.want(helm.ActionUninstall, chart, "")

	want := []string{
		"NamespaceCreated: created namespace " + r.namespace + " in the workload cluster; it stays when the release is uninstalled",
		"ObjectsKept: These resources were kept due to the resource policy: [ConfigMap] kept " +
			"1 resource(s) were not deleted because they are not owned by this release: [ConfigMap] taken",
	}
	if diff := cmp.Diff(want, r.notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}

	if !r.has("kept") || !r.has("taken") || r.has("own") || r.numbers() != nil {
		t.Errorf("kept %v, taken %v, own %v, %v", r.has("kept"), r.has("taken"), r.has("own"), r.numbers())
	}
}

// notValid is an object that the server refuses, after the ConfigMaps were applied and before anything is removed.
const notValid = "---\napiVersion: v1\nkind: Service\nmetadata: {name: Not-Valid}\n"

// Helm uninstalls what the newest revision names. Attempts that failed before they removed anything leave more.
func TestAnUninstallAfterFailedAttempts(t *testing.T) {
	type step struct {
		action helm.Action
		fails  bool
		chart  string
	}

	for name, test := range map[string]struct {
		steps []step
		kept  string
	}{
		"upgrade": {steps: []step{
			{helm.ActionInstall, false, configMap("one") + configMap("two")},
			{helm.ActionUpgrade, true, configMap("one") + notValid},
		}},
		"upgrades": {steps: []step{
			{helm.ActionInstall, false, configMap("one")},
			{helm.ActionUpgrade, true, configMap("one") + configMap("two") + notValid},
			{helm.ActionUpgrade, true, configMap("three") + notValid},
		}},
		"installs": {steps: []step{
			{helm.ActionInstall, true, configMap("one") + notValid},
			{helm.ActionUpgrade, true, configMap("two") + notValid},
		}},
		"upgrades and then a good one": {steps: []step{
			{helm.ActionInstall, false, configMap("one")},
			{helm.ActionUpgrade, true, configMap("one") + configMap("two") + notValid},
			{helm.ActionUpgrade, true, configMap("one") + notValid},
			{helm.ActionUpgrade, false, configMap("three")},
		}},
		"installs and then a good one": {steps: []step{
			{helm.ActionInstall, true, configMap("one") + notValid},
			{helm.ActionUpgrade, true, configMap("two") + notValid},
			{helm.ActionUpgrade, false, configMap("three")},
		}},
		"a newer policy": {kept: "one", steps: []step{
			{helm.ActionInstall, false, configMap("one") + configMap("two")},
			{helm.ActionUpgrade, true, configMap("one") + "  annotations: {helm.sh/resource-policy: keep}\n" + notValid},
		}},
		// What a good revision has dropped is not the release's any more.
		"dropped long ago": {kept: "one", steps: []step{
			{helm.ActionInstall, false, configMap("one") + "  annotations: {helm.sh/resource-policy: keep}\n"},
			{helm.ActionUpgrade, false, configMap("two")},
			{helm.ActionUpgrade, true, configMap("three") + notValid},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRelease(t)

			for i, step := range test.steps {
				chart := chartOf("1.0."+strconv.Itoa(i), step.chart)
				if action, err := r.step(t.Context(), chart, ""); action != step.action || (err != nil) != step.fails {
					t.Fatalf("step %d: %s, %v", i, action, err)
				}
			}

			r.wanted.Absent = true
			r.want(helm.ActionUninstall, chartOf("2.0.0", ""), "")

			for _, object := range []string{"one", "two", "three"} {
				if r.has(object) != (object == test.kept) {
					t.Errorf("%s: there %v", object, r.has(object))
				}
			}

			if got := r.numbers(); got != nil {
				t.Errorf("left behind: %v", got)
			}
		})
	}
}

// What is stopped while its first hook runs has removed nothing, and never will.
func TestAnUninstallThatIsStopped(t *testing.T) {
	r := newRelease(t)
	r.want(helm.ActionInstall, hooked("pre-delete"), "")

	ctx, stop := context.WithCancel(t.Context())

	go func() {
		defer stop()

		for r.t.Context().Err() == nil {
			if _, err := cluster.Client().BatchV1().Jobs(r.namespace).Get(r.t.Context(), "hook", metav1.GetOptions{}); err == nil {
				return
			}

			time.Sleep(50 * time.Millisecond)
		}
	}()

	r.wanted.Absent = true

	var failure *helm.Error
	if _, err := r.step(ctx, hooked("pre-delete"), ""); !errors.As(err, &failure) || failure.Reason != helm.ReasonInterrupted {
		t.Fatalf("got %v, want %s", err, helm.ReasonInterrupted)
	}

	time.Sleep(time.Second)

	if !r.has("demo") {
		t.Error("an object was removed")
	}
}

// The hook of an uninstall has done its work, and may not work any more, when that is stopped, or an object does not go in time.
func TestAnUninstallGoesOnBehindItsHooks(t *testing.T) {
	r := newRelease(t)
	chart := hooked("pre-delete")
	chart.Files["templates/all.yaml"] = configMap("held") + "  finalizers: [example.com/wait]\n"
	r.want(helm.ActionInstall, chart, "")

	r.finishHook(batchv1.JobComplete) // the first, and none after it
	r.wanted.Absent = true

	var failure *helm.Error
	if _, err := r.step(r.stopWhen(r.loses("held")), chart, ""); !errors.As(err, &failure) || failure.Reason != helm.ReasonInterrupted {
		t.Fatalf("got %v, want %s", err, helm.ReasonInterrupted)
	}

	hook := r.job("hook").UID
	r.settings.Timeout = 5 * time.Second
	r.wantError(helm.ActionUninstall, chart, "", helm.ReasonTimeout, "held", "the records of the release are kept")

	held := r.configMap("held")
	held.Finalizers = nil

	if _, err := cluster.Client().CoreV1().ConfigMaps(r.namespace).Update(t.Context(), held, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}

	r.settings.Timeout = await.Limit
	r.want(helm.ActionUninstall, chart, "")

	if r.has("held") || r.numbers() != nil || r.job("hook").UID != hook {
		t.Errorf("held is left: %t, %v, and the hook is %s, before %s", r.has("held"), r.numbers(), r.job("hook").UID, hook)
	}
}

func (r *release) job(name string) *batchv1.Job {
	r.t.Helper()

	job, err := cluster.Client().BatchV1().Jobs(r.namespace).Get(r.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}

	return job
}
