package e2e

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// slowChart is ready only when somebody says that its Pod has succeeded: nothing runs Pods here.
func slowChart(version string) chartserver.Chart {
	chart := chartserver.ConfigMapChart("demo", version)
	chart.Files["templates/pod.yaml"] = `apiVersion: v1
kind: Pod
metadata: {name: "{{ .Release.Name }}-{{ .Chart.Version | replace "." "-" }}"}
spec: {containers: [{name: it, image: none}]}
`

	return chart
}

// finish makes the Pod of a slowChart ready, as soon as it is there: Helm writes its record first.
func (r *releasing) finish(pod string) {
	r.t.Helper()
	r.end(pod, "Succeeded")
}

// end gives a Pod a phase, as soon as it is there.
func (r *releasing) end(pod, phase string) {
	r.t.Helper()
	r.wait("Pod "+pod, func() error {
		_, stderr, err := r.hub.Kubectl(r.t.Context(), "-n", r.apps, "patch", "pod", pod, "--subresource=status", "--type=merge",
			"-p", `{"status":{"phase":"`+phase+`"}}`)
		if err != nil {
			return fmt.Errorf("%w: %s", err, stderr)
		}

		return nil
	})
}

func (r *releasing) waitRecords(name string, want ...string) {
	r.t.Helper()
	r.wait("Helm's records", func() error {
		if got := r.records(name); !slices.Equal(got, want) {
			return fmt.Errorf("they are %v, want %v", got, want)
		}

		return nil
	})
}

func (r *releasing) crash() {
	r.t.Helper()
	stack.Controller.Kill()
	r.restartController()
}

// The controller is killed in the middle of an install, an upgrade and an uninstall: the next one finishes them, with
// no second revision for the same content. A restart, a kill and another kubeconfig make no revision and no download.
func TestHelmReleaseCrash(t *testing.T) {
	slow(t)
	r := newReleasing(t)
	r.charts.Add(slowChart("2.0.0"))
	r.charts.Add(slowChart("2.1.0"))

	r.apply(r.releaseOf("app", "2.0.0", "  wait: true"))
	r.waitRecords("app", "1 pending-install")
	r.crash()
	r.waitRecords("app", "1 pending-install")
	r.finish("app-2-0-0")
	r.ready("ohr", "app")
	r.wantRecords("app", "1 deployed")

	r.apply(r.releaseOf("app", "2.1.0", "  wait: true"))
	r.waitRecords("app", "1 deployed", "2 pending-upgrade")
	r.crash()
	r.finish("app-2-1-0")
	r.ready("ohr", "app")
	r.wantRecords("app", "1 superseded", "2 deployed")

	// Restart in order, another kubeconfig of the same cluster.
	downloads := r.charts.Downloads()
	before := r.status("app")

	if err := stack.Controller.Stop(); err != nil {
		t.Fatal(err)
	}

	r.restartController()
	r.apply(kubeconfigManifest(t, "demo-kubeconfig", r.hub) + "\n    # rotated\n")
	r.handled("ohr", "app", "after")
	r.wantRecords("app", "1 superseded", "2 deployed")

	if got := r.charts.Downloads(); got != downloads {
		t.Errorf("%d downloads after the restart", got-downloads)
	}

	if after := r.status("app"); after.LastAction != before.LastAction || !after.LastActionTime.Equal(before.LastActionTime) {
		t.Errorf("the restart changed the status: %+v", after)
	}

	r.hold("app", "example.com/hold")
	r.run("delete", "ohr", "app", "--wait=false")
	r.wait("the uninstall to begin", func() error {
		if got := r.records("app"); len(got) == 0 || got[len(got)-1] != "2 uninstalling" {
			return fmt.Errorf("records: %v", got)
		}

		return nil
	})
	r.crash()
	r.waitCondition("ohr", "app", v1alpha1.ConditionReconciling, metav1.ConditionTrue, "")
	r.hold("app")
	r.waitGone("ohr", "app")
	r.waitData("app", nil)
	r.wantRecords("app")
}

// The controller is killed in the middle of a rollback: the next one finishes it.
func TestHelmReleaseCrashInRollback(t *testing.T) {
	slow(t)
	r := newReleasing(t)
	r.charts.Add(hookChart("1.2.0", "pre-rollback"))
	r.charts.Add(brokenChart("1.3.0"))
	r.apply(r.releaseOf("app", "1.2.0"))
	r.ready("ohr", "app")

	r.apply(r.releaseOf("app", "1.3.0", "  rollbackOnFailure: true", "  retries: 0"))
	r.waitRecords("app", "1 deployed", "2 failed", "3 pending-rollback")

	former := r.pod("app-hook")

	r.crash()
	r.waitRecords("app", "1 deployed", "2 failed", "3 failed", "4 pending-rollback")
	r.waitReplaced("app-hook", former)
	r.end("app-hook", "Succeeded")
	r.stalls("app", v1alpha1.ReasonActionFailed, "spec.retries is 0")
	r.waitRecords("app", "1 superseded", "2 failed", "3 failed", "4 deployed")
	r.waitData("app", map[string]string{"chart": "1.2.0", "greeting": "hello"})
}

// hold sets the finalizers of the release's ConfigMap, so that nobody can remove it.
func (r *releasing) hold(name string, finalizers ...string) {
	r.t.Helper()
	r.wait("finalizers", func() error {
		found, err := r.hub.Client().CoreV1().ConfigMaps(r.apps).Get(r.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}

		found.Finalizers = finalizers
		_, err = r.hub.Client().CoreV1().ConfigMaps(r.apps).Update(r.t.Context(), found, metav1.UpdateOptions{})

		return err
	})
}

// A stop in order, in the middle of an install, marks it; the next controller makes the same revision again.
func TestHelmReleaseStop(t *testing.T) {
	slow(t)
	r := newReleasing(t)
	r.charts.Add(slowChart("2.0.0"))
	r.apply(r.releaseOf("app", "2.0.0", "  wait: true"))
	r.waitRecords("app", "1 pending-install")

	if err := stack.Controller.Stop(); err != nil {
		t.Error(err)
	}

	r.wantRecords("app", "1 failed")
	r.restartController()
	r.waitRecords("app", "1 pending-install")
	r.finish("app-2-0-0")
	r.ready("ohr", "app")
	r.wantRecords("app", "1 deployed")

	if got := r.status("app"); got.Failures != 0 {
		t.Errorf("the stop counts as a failure: %+v", got)
	}
}
