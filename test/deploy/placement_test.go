package deploy

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
