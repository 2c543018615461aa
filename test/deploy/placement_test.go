package deploy

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestPodsRunOnLinux: every Pod of the chart and of the base, the check of `helm test`, and the Pod that docs/how-to/backup.md
// restores with ask for a node with Linux. On Windows a driver may format the volume with the objects. What the user selects
// nodes by is added, and counts more.
func TestPodsRunOnLinux(t *testing.T) {
	linux := map[string]string{"kubernetes.io/os": "linux"}
	controlPlane := map[string]string{"kubernetes.io/os": "linux", "node-role.kubernetes.io/control-plane": ""}
	other := map[string]string{"kubernetes.io/os": "other"}

	for values, want := range map[string]map[string]string{
		"":                             linux,
		valueSets(t)["external-etcd"]:  linux,
		valueSets(t)["all-namespaces"]: linux,
		valueSets(t)["everything"]:     controlPlane,
		`{apiserver: {nodeSelector: {kubernetes.io/os: other}}, controller: {nodeSelector: {kubernetes.io/os: other}}}`: other,
		`{apiserver: {nodeSelector: null}, controller: {nodeSelector: null}}`:                                           linux,
	} {
		checkNodeSelectors(t, values, append(decode(t, stream(mustRender(t, values))), hooks(t, values)...), 3, want)
	}

	checkNodeSelectors(t, "the base", decode(t, build(t, baseDir)), 2, linux)

	_, rest, _ := strings.Cut(shellBlock(t, filepath.Join(root, "docs/how-to/backup.md"), "kind: Pod"), "<<END\n")
	manifest, _, _ := strings.Cut(rest, "END\n")
	checkNodeSelectors(t, "backup.md", decode(t, manifest), 1, linux)
}

// checkNodeSelectors: there are at least so many Pods, and each selects nodes by these labels.
func checkNodeSelectors(t *testing.T, where string, objects []*unstructured.Unstructured, atLeast int, want map[string]string) {
	t.Helper()

	pods := 0

	for _, object := range objects {
		path := []string{"spec", "template", "spec", "nodeSelector"}

		switch object.GetKind() {
		case "Pod":
			path = []string{"spec", "nodeSelector"}
		case "StatefulSet", "Deployment":
		default:
			continue
		}

		pods++

		if got, _, err := unstructured.NestedStringMap(object.Object, path...); err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: the nodes of %s are %v, %v; want %v", where, identity(object), got, err, want)
		}
	}

	if pods < atLeast {
		t.Errorf("%s: there are %d Pods, want %d or more", where, pods, atLeast)
	}
}

// TestCriticalPods: Pods with a class of the system have a ResourceQuota for it, which some clusters (GKE) ask for, and which
// limits nothing. Other Pods have none.
func TestCriticalPods(t *testing.T) {
	const node, cluster = "system-node-critical", "system-cluster-critical"

	for values, want := range map[string][]string{
		"":                         nil,
		valueSets(t)["everything"]: {cluster},
		`{apiserver: {priorityClassName: high}, controller: {priorityClassName: system-of-ours}}`:                          nil,
		`apiserver: {priorityClassName: system-cluster-critical}`:                                                          {cluster},
		`controller: {priorityClassName: system-node-critical}`:                                                            {node},
		`{apiserver: {priorityClassName: system-node-critical}, controller: {priorityClassName: system-cluster-critical}}`: {cluster, node},
		`{apiserver: {priorityClassName: high}, controller: {priorityClassName: system-cluster-critical}}`:                 {cluster},
	} {
		var got []string

		for _, object := range decode(t, stream(mustRender(t, values))) {
			if object.GetKind() != "ResourceQuota" {
				continue
			}

			var quota corev1.ResourceQuota
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &quota, true); err != nil {
				t.Fatal(err)
			}

			scope := quota.Spec.ScopeSelector.MatchExpressions[0]
			if scope.ScopeName != corev1.ResourceQuotaScopePriorityClass || scope.Operator != corev1.ScopeSelectorOpIn || quota.Namespace != namespace {
				t.Errorf("%s: the quota in %s is for %+v", values, quota.Namespace, scope)
			}

			if pods := quota.Spec.Hard.Pods().Value(); len(quota.Spec.Hard) != 1 || pods < 1_000_000 {
				t.Errorf("%s: the quota allows %v", values, quota.Spec.Hard)
			}

			got = append(got, scope.Values...)
		}

		if !slices.Equal(got, want) {
			t.Errorf("%s: the quota is for %v, want %v", values, got, want)
		}
	}
}
