package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
	"omni.texashpc.com/omni-cluster-operator/test/env"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

const manifestsOrHelmPage = "docs/how-to/manifests-or-helm.md"

// moving is a fleet with the page's cluster, of which Omni applies podinfo as raw manifests. The simulated Omni applies
// nothing in workload clusters: the test does what the real one would.
type moving struct {
	*fleet

	hub    *env.Hub
	charts *chartserver.Repository
}

func newMoving(t *testing.T) *moving {
	t.Helper()

	m := &moving{fleet: newFleet(t), hub: workloads.Borrow(t), charts: chartserver.StartRepository()}
	t.Cleanup(m.charts.Close)
	m.charts.Add(chartserver.ConfigMapChart("podinfo", "6.9.2"))

	cert, key := m.hub.FrontProxyClient()
	if err := m.omni.AttachWorkload("cluster-01", omnisim.Workload{URL: m.hub.URL(), CA: m.hub.CA(), ProxyCert: cert, ProxyKey: key}); err != nil {
		t.Fatal(err)
	}

	if _, err := m.hub.Client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "apps"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	m.applied()
	m.cluster("cluster-01")
	m.run("patch", "ocl", "cluster-01", "--type=merge", "-p", `{"spec":{"kubernetes":{"manifests":[`+
		`{"name":"base","mode":"full","inline":[{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"apps"}}]},`+
		`{"name":"podinfo","mode":"full","inline":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"podinfo","namespace":"apps"},"data":{"greeting":"hello"}}]}]}}}`)
	m.wait("Omni to have both groups", func() error { return m.groups("base", "podinfo") })

	return m
}

// applied makes the object of the group in the workload cluster, as Omni does.
func (m *moving) applied() {
	m.t.Helper()

	_, err := m.hub.Client().CoreV1().ConfigMaps("apps").Create(m.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "podinfo"}, Data: map[string]string{"greeting": "hello"},
	}, metav1.CreateOptions{FieldManager: "omni"})
	if err != nil {
		m.t.Fatal(err)
	}
}

// groups checks which groups Omni has from the cluster, by the ends of their IDs.
func (m *moving) groups(want ...string) error {
	m.t.Helper()

	got := get[v1alpha1.OmniCluster](m.space, "ocl", "cluster-01").Status.AppliedManifests
	if len(got) != len(want) {
		return fmt.Errorf("Omni has %v", got)
	}

	for i, id := range got {
		if !strings.HasSuffix(id, want[i]) {
			return fmt.Errorf("Omni has %v", got)
		}
	}

	return nil
}

// removed deletes the object once Omni has lost its group, as Omni does.
func (m *moving) removed() {
	m.t.Helper()
	m.wait("Omni to lose the group", func() error { return m.groups("base") })

	if err := m.hub.Client().CoreV1().ConfigMaps("apps").Delete(m.t.Context(), "podinfo", metav1.DeleteOptions{}); err != nil {
		m.t.Fatal(err)
	}
}

// steps are the page's blocks of commands, with the address of the chart repository of the test.
func (m *moving) steps() []block {
	m.t.Helper()

	steps := pageBlocks(m.t, manifestsOrHelmPage, "sh")
	if len(steps) != 5 {
		m.t.Fatalf("the page has %d steps", len(steps))
	}

	const repository = "https://stefanprodan.github.io/podinfo"

	if strings.Count(steps[3].text, repository) != 1 {
		m.t.Fatal("the fourth step names no chart repository")
	}

	steps[3].text = strings.Replace(steps[3].text, repository, m.charts.URL(), 1)

	return steps
}

// The five steps of docs/how-to/manifests-or-helm.md lead from raw manifests to a release.
func TestManifestsToHelmPage(t *testing.T) {
	t.Parallel()

	m := newMoving(t)
	r := m.newReader("ADMIN=" + m.hub.KubeconfigPath)

	for i, step := range m.steps() {
		if i == 2 {
			m.removed()
		}

		if out := r.types(step.text); i == 4 {
			r.wants(out, "deployed", "sh.helm.release.v1.podinfo.v1")
		}
	}

	found, err := m.hub.Client().CoreV1().ConfigMaps("apps").Get(t.Context(), "podinfo", metav1.GetOptions{})
	if err != nil || found.Labels["app.kubernetes.io/managed-by"] != "Helm" {
		t.Errorf("the object in the workload cluster is %+v: %v", found, err)
	}
}

// What the page says of objects that stay: Helm refuses them, and takes them over when it is told to.
func TestManifestsToHelmPageObjectsThatStay(t *testing.T) {
	t.Parallel()

	m := newMoving(t)
	r := m.newReader("ADMIN=" + m.hub.KubeconfigPath)
	steps := m.steps()

	r.types(steps[0].text)
	m.run("patch", "ocl", "cluster-01", "--type=json", "-p", `[{"op":"replace","path":"/spec/kubernetes/manifests","value":[]}]`)
	r.types(steps[3].text)

	m.wait("Helm to refuse the object", func() error {
		message, err := m.condition("ohr", "cluster-01-podinfo", v1alpha1.ConditionReleased, metav1.ConditionFalse, "")
		if err == nil && !strings.Contains(message, `ConfigMap "podinfo" in namespace "apps" exists`) {
			err = errors.New(message)
		}

		return err
	})

	patches := pageBlocks(t, manifestsOrHelmPage, "yaml")
	if len(patches) != 1 {
		t.Fatalf("the page has %d manifests", len(patches))
	}

	m.run("patch", "ohr", "cluster-01-podinfo", "--type=merge", "-p", patches[0].text)
	r.types(steps[4].text)
}
