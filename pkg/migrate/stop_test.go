package migrate

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Pod that has ended acts no more, and no ReplicaSet removes one that was evicted. All others count, also those that are
// going or whose node says nothing.
func TestPodsThatRun(t *testing.T) {
	for phase, runs := range map[string]bool{"": true, "Pending": true, "Running": true, "Unknown": true, "Succeeded": false, "Failed": false} {
		pod := parsed(t, `
apiVersion: v1
kind: Pod
metadata: {name: manager-1, namespace: old, labels: {control-plane: controller-manager}}
status: {phase: `+phase+`}`)
		deployment := parsed(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: old}
spec: {selector: {matchLabels: {control-plane: controller-manager}}}`)

		pods, err := migrationOn(fakeHub(pod)).podsOf(t.Context(), deployment)
		if err != nil || (len(pods) > 0) != runs {
			t.Errorf("phase %q: %v, %v", phase, pods, err)
		}
	}
}

// The old operator is stopped if all that is left of it is a Pod that was evicted.
func TestStoppedWithAnEvictedPod(t *testing.T) {
	deployment := parsed(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: old, labels: {app.kubernetes.io/name: omni-cluster-operator, control-plane: controller-manager}}
spec: {selector: {matchLabels: {control-plane: controller-manager}}}`)
	if err := unstructured.SetNestedField(deployment.Object, int64(0), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}

	m := migrationOn(fakeHub(deployment, parsed(t, `
apiVersion: v1
kind: Pod
metadata: {name: manager-1, namespace: old, labels: {control-plane: controller-manager}}
status: {phase: Failed, reason: Evicted}`), parsed(t, `
apiVersion: v1
kind: Namespace
metadata: {name: kube-system, uid: hub}`)))
	m.hub.metadata = noSecrets()

	if running, err := m.running(t.Context()); err != nil || running != "" {
		t.Errorf("runs: %q, %v", running, err)
	}
}
