package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// A manifest needs a CustomResourceDefinition that a Helm release brings: the cluster is not Ready without it, and neither the
// kubeconfig nor the release waits for the cluster.
func TestReleaseDoesNotWaitForManifests(t *testing.T) {
	t.Parallel()

	m := newMoving(t)
	r := m.newReader("ADMIN=" + m.hub.KubeconfigPath)
	steps := m.steps()

	m.omni.SetKindUnknown("cluster-01", "Widget", true)
	m.run("patch", "ocl", "cluster-01", "--type=merge", "-p", `{"spec":{"kubernetes":{"manifests":[`+
		`{"name":"base","mode":"full","inline":[{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"apps"}}]},`+
		`{"name":"widgets","mode":"full","inline":[{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"apps"}}]}]}}}`)
	m.wait("Omni to lose the group", func() error { return m.groups("base", "widgets") })

	if err := m.hub.Client().CoreV1().ConfigMaps("apps").Delete(t.Context(), "podinfo", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	notApplied := func() {
		t.Helper()

		message := m.waitCondition("ocl", "cluster-01", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonManifestsNotApplied)
		if !strings.Contains(message, "not applied: Widget apps/w; ") {
			t.Error(message)
		}
	}

	notApplied()

	for _, step := range []int{0, 3, 4} { // the kubeconfig, the release, and that it is Ready
		r.types(steps[step].text)
	}

	notApplied()
	m.omni.SetKindUnknown("cluster-01", "Widget", false)
	m.ready("cluster-01")
}
