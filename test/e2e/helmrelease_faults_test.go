package e2e

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// brokenChart renders an object that no API server takes.
func brokenChart(version string) chartserver.Chart {
	chart := chartserver.ConfigMapChart("demo", version)
	chart.Files["templates/broken.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n"

	return chart
}

func (r *releasing) stalls(name, reason string, texts ...string) {
	r.t.Helper()

	message := r.waitCondition("ohr", name, v1alpha1.ConditionStalled, metav1.ConditionTrue, reason)
	for _, text := range texts {
		if !strings.Contains(message, text) {
			r.t.Errorf("%s does not say %q: %s", reason, text, message)
		}
	}
}

// Bad input is said clearly, and what is deployed stays.
func TestHelmReleaseBadInput(t *testing.T) {
	t.Parallel()

	r := newReleasing(t)
	digest := r.charts.Add(chartserver.ConfigMapChart("demo", "1.0.0"))
	r.apply(r.release("    digest: " + digest))
	r.ready("ohr", "app")

	r.apply(r.release("    digest: sha256:" + strings.Repeat("0", 64)))
	r.stalls("app", v1alpha1.ReasonDigestMismatch, digest, "stays as it is")

	r.apply(r.releaseOf("app", "9.9.9"))
	r.stalls("app", v1alpha1.ReasonChartNotFound, "demo")

	r.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: list}\ndata: {values.yaml: '[canary]'}")
	r.apply(r.release("    valuesFrom: [{kind: ConfigMap, name: list}]"))
	r.stalls("app", v1alpha1.ReasonValuesInvalid, `ConfigMap "list"`, "must be an object")

	r.apply(r.release("    valuesFrom: [{kind: ConfigMap, name: none}]"))
	r.waitCondition("ohr", "app", v1alpha1.ConditionValuesResolved, metav1.ConditionFalse, v1alpha1.ReasonValueNotFound)

	hanging := chartserver.StartRepository()
	t.Cleanup(hanging.Close)
	hanging.Handle("/index.yaml", func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() })
	r.apply(strings.Replace(r.release(), r.charts.URL(), hanging.URL(), 1))
	r.waitCondition("ohr", "app", v1alpha1.ConditionChartFetched, metav1.ConditionFalse, v1alpha1.ReasonRepositoryUnreachable)

	r.apply(strings.Replace(r.release(), r.charts.URL(), "http://169.254.169.254/charts", 1))
	r.stalls("app", v1alpha1.ReasonForbiddenAddress, "169.254.169.254")

	r.waitData("app", map[string]string{"chart": "1.0.0", "greeting": "hello"})
	r.wantRecords("app", "1 deployed")
}

// A failing upgrade is rolled back, tried again, and given up until something changes.
func TestHelmReleaseRetries(t *testing.T) {
	t.Parallel()

	r := newReleasing(t)
	r.charts.Add(brokenChart("1.1.0"))
	r.apply(r.release())
	r.ready("ohr", "app")

	r.apply(r.releaseOf("app", "1.1.0", "  rollbackOnFailure: true", "  retries: 1"))
	r.stalls("app", v1alpha1.ReasonActionFailed, "2 attempts failed", "Not_A_Name", "spec.retries is 1")
	r.waitData("app", map[string]string{"chart": "1.0.0", "greeting": "hello"})
	r.wantRecords("app", "1 superseded", "2 failed", "3 superseded", "4 failed", "5 deployed")
	r.waitEvent("UpgradeFailed", "Not_A_Name")
	r.waitEvent("RollbackSucceeded", "app")

	if got := r.status("app"); got.Failures != 2 || got.ChartVersion != "1.0.0" || got.Revision != 5 {
		t.Errorf("status: %+v", got)
	}

	r.handled("ohr", "app", "no more") // a request starts the count anew
	r.apply(r.release("    values: {data: {greeting: again}}"))
	r.ready("ohr", "app")
	r.waitData("app", map[string]string{"chart": "1.0.0", "greeting": "again"})
}

// Whose a release is decides who may touch it.
func TestHelmReleaseOwnership(t *testing.T) {
	t.Parallel()

	r := newReleasing(t)
	r.apply(r.release())
	r.ready("ohr", "app")

	r.apply(r.releaseOf("second", "1.0.0", "  releaseName: app", "  takeOwnership: true"))
	r.stalls("second", v1alpha1.ReasonConflict, r.apps+"/app", "deletionPolicy Orphan")
	r.run("delete", "ohr", "second", "--timeout=60s")
	r.wantRecords("app", "1 deployed")

	r.run("patch", "ohr", "app", "--type=merge", "-p", `{"spec":{"deletionPolicy":"Orphan"}}`)
	r.run("delete", "ohr", "app", "--timeout=60s")
	r.waitEvent("LeftBehind", r.apps+"/app", "Orphan")
	r.waitData("app", map[string]string{"chart": "1.0.0", "greeting": "hello"})

	r.apply(r.releaseOf("second", "1.0.0", "  releaseName: app"))
	r.stalls("second", v1alpha1.ReasonConflict, "spec.takeOwnership")
	r.apply(r.releaseOf("second", "1.0.0", "  releaseName: app", "  takeOwnership: true"))
	r.ready("ohr", "second")
	r.wantRecords("app", "1 superseded", "2 deployed")
	r.handled("ohr", "second", "again")
	r.wantRecords("app", "1 superseded", "2 deployed")

	// One that Helm made by hand has none of our labels.
	for i := 1; i <= 2; i++ {
		record := fmt.Sprintf("sh.helm.release.v1.app.v%d", i)
		if _, stderr, err := r.hub.Kubectl(t.Context(), "-n", r.apps, "label", "secret", record, "omni.texashpc.com/owner-", "omni.texashpc.com/content-", "omni.texashpc.com/attempt-"); err != nil {
			t.Fatal(err, stderr)
		}
	}

	r.apply(r.releaseOf("second", "1.0.0", "  releaseName: app"))
	r.stalls("second", v1alpha1.ReasonForeignTarget, "spec.takeOwnership")
	r.apply(r.releaseOf("second", "1.0.0", "  releaseName: app", "  takeOwnership: true"))
	r.ready("ohr", "second")
	r.wantRecords("app", "1 superseded", "2 superseded", "3 deployed")
}

// An object is renamed in Git: the new one is there before the old one is pruned. It installs what the old one takes
// with it, and does not wait for its interval of ten minutes.
func TestHelmReleaseRenamed(t *testing.T) {
	t.Parallel()

	r := newReleasing(t)
	r.apply(r.releaseOf("old", "1.0.0", "  releaseName: app"))
	r.ready("ohr", "old")
	r.apply(r.releaseOf("new", "1.0.0", "  releaseName: app"))
	r.stalls("new", v1alpha1.ReasonConflict, "/old")
	r.run("delete", "ohr", "old", "--timeout=60s")
	r.ready("ohr", "new")
	r.wantRecords("app", "1 deployed")
}

// A value from a Secret is shown nowhere, also when the cluster refuses an object and repeats it.
func TestHelmReleaseSecretValues(t *testing.T) {
	t.Parallel()

	r := newReleasing(t)
	chart := chartserver.ConfigMapChart("demo", "1.1.0")
	chart.Files["templates/refused.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: named, labels: {it: {{ .Values.word | quote }}}}\n"
	r.charts.Add(chart)

	const canary = "hush hush/7f3a"

	r.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: words}\nstringData: {word: " + canary + "}")
	r.apply(r.releaseOf("app", "1.1.0", "    valuesFrom: [{kind: Secret, name: words, key: word, targetPath: word}]", "  retries: 0"))
	r.stalls("app", v1alpha1.ReasonActionFailed, "[removed]")

	log, err := os.ReadFile(stack.Controller.LogPath())
	if err != nil {
		t.Fatal(err)
	}

	metrics, err := stack.Controller.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	for what, text := range map[string]string{
		"object": r.run("get", "ohr", "app", "-o", "yaml"), "events": r.run("get", "events", "-o", "yaml"), "log": string(log), "metrics": metrics,
	} {
		if strings.Contains(text, canary) {
			t.Errorf("the %s shows the value", what)
		}
	}
}
