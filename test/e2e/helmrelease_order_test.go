package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// A release waits for those it depends on, and a circle is said.
func TestHelmReleaseDependencies(t *testing.T) {
	t.Parallel()

	r := newReleasing(t)
	r.apply(r.releaseOf("after", "1.0.0", "  dependsOn: [{name: before}]"))

	if message := r.waitCondition("ohr", "after", v1alpha1.ConditionReleased, metav1.ConditionFalse, v1alpha1.ReasonDependencyNotReady); !strings.Contains(message, `"before"`) {
		t.Error(message)
	}

	r.wantRecords("after")
	r.apply(r.releaseOf("before", "1.0.0"))
	r.ready("ohr", "after")
	r.apply(r.releaseOf("before", "1.0.0", "  dependsOn: [{name: after}]"))
	r.stalls("before", v1alpha1.ReasonDependencyCycle, "before -> after -> before")
}

// When a cycle is cut, its farthest release learns so as well, before any of them is Ready: each tells the next.
func TestHelmReleaseCycleIsCut(t *testing.T) {
	t.Parallel()

	r := newReleasing(t)
	r.apply(r.releaseOf("a", "1.0.0", "  dependsOn: [{name: b}]"), r.releaseOf("b", "1.0.0", "  dependsOn: [{name: c}]"), r.releaseOf("c", "1.0.0", "  dependsOn: [{name: a}]"))

	for _, name := range []string{"a", "b", "c"} {
		r.waitCondition("ohr", name, v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonDependencyCycle)
	}

	r.apply(r.releaseOf("c", "9.9.9")) // there is no such chart

	for _, name := range []string{"b", "a"} {
		r.waitCondition("ohr", name, v1alpha1.ConditionReleased, metav1.ConditionFalse, v1alpha1.ReasonDependencyNotReady)
	}

	r.apply(r.releaseOf("c", "1.0.0"))
	r.ready("ohr", "a")
}

// A suspended release does nothing, keeps Ready as it was, and goes on later.
func TestHelmReleaseSuspended(t *testing.T) {
	t.Parallel()

	r := newReleasing(t)
	r.apply(r.release("  suspend: true"))
	r.waitCondition("ohr", "app", v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
	r.wantRecords("app")
	r.apply(r.release())
	r.ready("ohr", "app")

	// An upgrade that waits for its chart has changed nothing yet.
	later, asked, answer := chartserver.ConfigMapChart("demo", "1.1.0"), make(chan struct{}, 9), make(chan struct{})
	r.charts.Add(later)
	r.charts.Handle("/demo-1.1.0.tgz", func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		<-answer

		_, _ = w.Write(later.Pack())
	})
	r.apply(r.releaseOf("app", "1.1.0"))
	<-asked
	r.apply(r.releaseOf("app", "1.1.0", "  suspend: true"))
	r.waitCondition("ohr", "app", v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
	close(answer)
	r.apply(r.release()) // its run waits for the upgrade to end
	r.ready("ohr", "app")
	r.wantRecords("app", "1 deployed")

	r.apply(r.release("    values: {data: {greeting: later}}", "  suspend: true"))
	r.waitCondition("ohr", "app", v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
	r.waitCondition("ohr", "app", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	r.wantRecords("app", "1 deployed")
	r.run("delete", "ohr", "app", "--timeout=60s")
	r.waitData("app", nil)
}

// Drift is shown without a loss of Ready, left out where that is asked for, and corrected.
func TestHelmReleaseDrift(t *testing.T) {
	t.Parallel()

	r := newReleasing(t)
	r.apply(r.release("  driftDetection: {mode: Warn}"))
	r.ready("ohr", "app")
	r.waitCondition("ohr", "app", v1alpha1.ConditionDrifted, metav1.ConditionFalse, v1alpha1.ReasonNoDrift)

	if _, stderr, err := r.hub.Kubectl(t.Context(), "-n", r.apps, "patch", "configmap", "app", "-p", `{"data":{"greeting":"changed"}}`); err != nil {
		t.Fatal(err, stderr)
	}

	r.handled("ohr", "app", "look")

	if message := r.waitCondition("ohr", "app", v1alpha1.ConditionDrifted, metav1.ConditionTrue, v1alpha1.ReasonDriftFound); !strings.Contains(message, "/data/greeting") {
		t.Error(message)
	}

	r.waitCondition("ohr", "app", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	r.apply(r.release("  driftDetection: {mode: Warn, ignore: [{target: {kind: ConfigMap}, paths: [/data/greeting]}]}"))
	r.waitCondition("ohr", "app", v1alpha1.ConditionDrifted, metav1.ConditionFalse, v1alpha1.ReasonNoDrift)
	r.apply(r.release("  driftDetection: {mode: Correct}"))
	r.waitData("app", map[string]string{"chart": "1.0.0", "greeting": "hello"})
	r.waitCondition("ohr", "app", v1alpha1.ConditionDrifted, metav1.ConditionFalse, v1alpha1.ReasonDriftCorrected)
	r.waitEvent("CorrectSucceeded", "app")
	r.wantRecords("app", "1 deployed")
}

// A chart comes from a registry with credentials and a private authority, pinned by the digest of its manifest, and its
// test runs once for each revision.
func TestHelmReleaseRegistry(t *testing.T) {
	t.Parallel()

	r := newReleasing(t)
	registry := chartserver.StartRegistry()
	t.Cleanup(registry.Close)
	registry.Protect("robot", "s3cret")

	_, manifest := registry.Push("charts/demo", chartserver.ConfigMapChart("demo", "3.0.0"), nil)
	chart := fmt.Sprintf(`    chart: %s
    version: 3.x
    digest: %s
    caSecretRef: {name: ca}
`, registry.URL("charts/demo"), manifest)
	release := func(more string) string {
		return strings.Replace(r.releaseOf("app", "1.0.0", more), fmt.Sprintf("    repository: %s\n    chart: demo\n    version: 1.0.0\n", r.charts.URL()), chart, 1)
	}

	r.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: ca}\nstringData:\n  ca.crt: |\n    "+
		strings.ReplaceAll(strings.TrimSpace(string(registry.CA())), "\n", "\n    "), release(""))
	r.stalls("app", v1alpha1.ReasonChartUnauthorized, "authSecretRef")
	r.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: auth}\ntype: kubernetes.io/basic-auth\nstringData: {username: robot, password: s3cret}",
		release("    authSecretRef: {name: auth}\n  test: {enable: true}"))
	r.ready("ohr", "app")
	r.waitCondition("ohr", "app", v1alpha1.ConditionTested, metav1.ConditionTrue, v1alpha1.ReasonTestsPassed)
	r.waitData("app", map[string]string{"chart": "3.0.0", "greeting": "hello"})
	r.wantRecords("app", "1 deployed")
}
