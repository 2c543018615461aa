package e2e

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// hookChart has a Pod as a hook, which the test has to end: nothing runs Pods here.
func hookChart(version, hook string) chartserver.Chart {
	chart := chartserver.ConfigMapChart("demo", version)
	chart.Files["templates/hook.yaml"] = fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: "{{ .Release.Name }}-hook", annotations: {helm.sh/hook: %s}}
spec: {restartPolicy: Never, containers: [{name: it, image: none}]}
`, hook)

	return chart
}

// A hook that fails fails the action and says which it was. A test of a chart that fails keeps the object from being
// Ready, unless that is ignored, and what is deployed stays.
func TestHelmReleaseHooks(t *testing.T) {
	t.Parallel()

	r := newReleasing(t)
	r.charts.Add(hookChart("1.4.0", "pre-install"))
	r.charts.Add(hookChart("1.5.0", "test"))

	r.apply(r.releaseOf("app", "1.4.0", "  retries: 0"))
	r.end("app-hook", "Failed")
	r.stalls("app", v1alpha1.ReasonActionFailed, "pre-install", "app-hook")
	r.waitEvent("InstallFailed", "app-hook")
	r.wantRecords("app", "1 failed")
	r.waitData("app", nil)

	former := r.pod("app-hook")
	r.apply(r.releaseOf("app", "1.5.0", "  retries: 0", "  test: {enable: true}"))
	r.waitRecords("app", "1 superseded", "2 deployed")
	r.waitReplaced("app-hook", former)
	r.end("app-hook", "Failed")
	r.stalls("app", v1alpha1.ReasonTestsFailed, "app-hook")
	r.waitEvent("TestFailed", "app-hook")
	r.waitData("app", map[string]string{"chart": "1.5.0", "greeting": "hello"})

	r.handled("ohr", "app", "again")
	r.stalls("app", v1alpha1.ReasonTestsFailed)
	r.wantRecords("app", "1 superseded", "2 deployed")

	r.apply(r.releaseOf("app", "1.5.0", "  retries: 0", "  test: {enable: true, ignoreFailures: true}"))
	r.waitCondition("ohr", "app", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonTestsFailed)
	r.waitCondition("ohr", "app", v1alpha1.ConditionTested, metav1.ConditionFalse, v1alpha1.ReasonTestsFailed)
}

// pod is the UID of a Pod that exists, or will in a moment.
func (r *releasing) pod(name string) (uid types.UID) {
	r.t.Helper()
	r.wait("Pod "+name, func() error {
		found, err := r.hub.Client().CoreV1().Pods(r.apps).Get(r.t.Context(), name, metav1.GetOptions{})
		if err == nil {
			uid = found.UID
		}

		return err
	})

	return uid
}

// waitReplaced waits until there is another Pod of the name: Helm removes the one of an earlier run first.
func (r *releasing) waitReplaced(name string, former types.UID) {
	r.t.Helper()
	r.wait("another Pod "+name, func() error {
		if r.pod(name) == former {
			return fmt.Errorf("it is still %s", former)
		}

		return nil
	})
}
