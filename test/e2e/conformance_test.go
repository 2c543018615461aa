package e2e

import (
	"bufio"
	"fmt"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// These tests hold the server to what every client of Kubernetes expects, through the aggregator.

// releaseManifest is suspended, so that its status is the tests' own.
const releaseManifest = `apiVersion: omni.texashpc.com/v1alpha1
kind: OmniHelmRelease
metadata:
  name: r
spec:
  suspend: true
  clusterRef: {name: absent}
  kubeconfigSecretRef: {name: k}
  chart: {chart: oci://example.com/x, version: 1.0.0}`

// path is where the API serves a resource of the namespace.
func (s *space) path(resource string) string {
	return "/apis/omni.texashpc.com/v1alpha1/namespaces/" + s.name + "/" + resource
}

func TestWatchListAndPaging(t *testing.T) {
	s := newSpace(t)
	s.kubectlApply(workersManifest("w1", "a", "machines: []"), workersManifest("w2", "b", "machines: []"),
		workersManifest("w3", "a", "machines: []"))
	s.run("label", "ow", "w1", "w2", "tier=x")

	events := s.initialEvents(s.path("omniworkers") + "?watch=true&sendInitialEvents=true&allowWatchBookmarks=true" +
		"&resourceVersionMatch=NotOlderThan&timeoutSeconds=60&labelSelector=tier%3Dx&fieldSelector=spec.clusterRef.name%3Da")
	if len(events) != 2 || !strings.Contains(events[0], `"name":"w1"`) || !strings.Contains(events[1], `"k8s.io/initial-events-end":"true"`) {
		t.Errorf("want w1 and the bookmark, got\n%s", strings.Join(events, ""))
	}

	for _, tc := range []struct {
		query string
		want  []string
	}{
		{"?limit=2", []string{`"continue":"`, `"remainingItemCount":1`, `"name":"w2"`}},
		{"?resourceVersion=0&fieldSelector=spec.clusterRef.name%3Da", []string{`"name":"w1"`, `"name":"w3"`}},
	} {
		out := s.run("get", "--raw", s.path("omniworkers")+tc.query)
		for _, text := range tc.want {
			if !strings.Contains(out, text) {
				t.Errorf("%s: no %s in\n%s", tc.query, text, out)
			}
		}
	}

	for query, text := range map[string]string{
		"?limit=2&continue=broken":                            "continue",
		"?resourceVersion=abc":                                "invalid resource version",
		"?fieldSelector=spec.machineClass.name%3Dx":           "spec.clusterRef.name",
		"?watch=true&sendInitialEvents=true&timeoutSeconds=1": "NotOlderThan",
	} {
		if out, err := s.try("get", "--raw", s.path("omniworkers")+query); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %s %v, want %q", query, out, err, text)
		}
	}
}

// initialEvents are those of a watch until the bookmark that ends them. The controller may still change a status
// meanwhile, which is none of them.
func (s *space) initialEvents(path string) []string {
	s.t.Helper()

	stream, err := s.stack().Client().CoreV1().RESTClient().Get().RequestURI(path).Stream(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	defer stream.Close()

	var events []string

	for lines := bufio.NewReader(stream); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			s.t.Fatalf("no bookmark: %v in\n%s", err, strings.Join(events, ""))
		}

		if !strings.Contains(line, `"type":"MODIFIED"`) {
			events = append(events, line)
		}

		if strings.Contains(line, `"type":"BOOKMARK"`) {
			return events
		}
	}
}

func TestPatchesOfEveryType(t *testing.T) {
	s := newSpace(t)
	s.kubectlApply(workersManifest("w", "c", classOf("m", 1)))

	for i, tc := range []struct{ subresource, kind, patch, want string }{
		{"", "json", `[{"op":"replace","path":"/spec/machineClass/size","value":2}]`, "2"},
		{"", "merge", `{"spec":{"machineClass":{"size":"unlimited"}}}`, "unlimited"},
		{"", "strategic", `{"spec":{"machineClass":{"size":3}}}`, "3"},
		{"scale", "json", `[{"op":"replace","path":"/spec/replicas","value":4}]`, "4"},
		{"scale", "merge", `{"spec":{"replicas":5}}`, "5"},
		{"scale", "strategic", `{"spec":{"replicas":6}}`, "6"},
	} {
		args := []string{"patch", "ow", "w", "--type=" + tc.kind, "-p", tc.patch}
		if tc.subresource != "" {
			args = append(args, "--subresource="+tc.subresource)
		}

		s.run(args...)

		want := fmt.Sprintf("%s %d", tc.want, i+2)
		if got := s.run("get", "ow", "w", "-o", "jsonpath={.spec.machineClass.size} {.metadata.generation}"); got != want {
			t.Errorf("%s %s: size and generation %q, want %q", tc.subresource, tc.kind, got, want)
		}
	}

	if out, err := s.try("patch", "ow", "w", "--subresource=scale", "--type=merge", "-p", `{"spec":{"replicas":-1}}`); err == nil ||
		!strings.Contains(err.Error(), "spec.replicas: Invalid value: -1") {
		t.Errorf("-1 machines: %s %v", out, err)
	}
}

func TestConditionsHaveOneOwnerEach(t *testing.T) {
	s := newSpace(t)
	s.kubectlApply(releaseManifest)

	status := func(conditionType, value string) string {
		return fmt.Sprintf(`{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniHelmRelease","metadata":{"name":"r"},"status":{"conditions":[
			{"type":%q,"status":%q,"reason":"R","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, conditionType, value)
	}
	apply := func(manager, manifest string) error {
		_, err := s.tryInput(manifest, "apply", "--server-side", "--subresource=status", "--field-manager="+manager, "-f", "-")

		return err
	}

	if err := apply("one", status("Probe", "True")); err != nil {
		t.Fatal(err)
	}

	if err := apply("two", status("Other", "True")); err != nil {
		t.Errorf("a condition of its own: %v", err)
	}

	if err := apply("two", status("Probe", "False")); err == nil || !strings.Contains(err.Error(), `.status.conditions[type="Probe"].status`) {
		t.Errorf("another's condition: %v", err)
	}

	release := get[v1alpha1.OmniHelmRelease](s, "ohr", "r")
	if release.Generation != 1 || len(release.Status.Conditions) < 4 {
		t.Errorf("generation %d, conditions %s", release.Generation, describe(release.Status.Conditions))
	}
}

// Tools that know kstatus take an object without conditions for a finished one.
func TestWipedStatusIsThatOfANewObject(t *testing.T) {
	s := newSpace(t)
	s.kubectlApply(releaseManifest)

	out := s.run("patch", "ohr", "r", "--subresource=status", "--type=merge", "-p", `{"status":null}`, "-o",
		"jsonpath={.status.observedGeneration} {.status.conditions[*].type} {.status.conditions[*].reason}")
	if out != "-1 Ready Reconciling Pending Pending" {
		t.Errorf("got %q", out)
	}
}

func TestGarbageCollectionBothWays(t *testing.T) {
	s := newSpace(t)
	owned := func(manifest, kind, apiVersion, owner, uid string) string {
		return strings.Replace(manifest, "metadata:\n", fmt.Sprintf(
			"metadata:\n  ownerReferences: [{apiVersion: %s, kind: %s, name: %s, uid: %s, blockOwnerDeletion: true}]\n", apiVersion, kind, owner, uid), 1)
	}
	const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s"

	s.run("create", "configmap", "owner")
	s.kubectlApply(workersManifest("parent", "c", "machines: []"), workersManifest("kept", "c", "machines: []"))

	uid := func(resource, name string) string {
		return s.run("get", resource, name, "-o", "jsonpath={.metadata.uid}")
	}
	s.kubectlApply(owned(workersManifest("child", "c", "machines: []"), "ConfigMap", "v1", "owner", uid("configmap", "owner")),
		owned(fmt.Sprintf(configMap, "child"), "OmniWorkers", "omni.texashpc.com/v1alpha1", "parent", uid("ow", "parent")))

	s.run("delete", "configmap", "owner", "--wait=false")
	s.run("delete", "ow", "parent", "--cascade=foreground", "--wait=false")
	s.waitGone("configmap", "child")
	s.waitGone("ow", "parent")

	// What has effects elsewhere stays until its deletion is confirmed. The garbage collector tries again.
	s.garbageCollectorRefused("omniworkers", "child")
	s.run("annotate", "ow", "child", "omni.texashpc.com/confirm-deletion=child")
	s.waitGone("ow", "child")

	if _, err := s.try("get", "ow", "kept"); err != nil {
		t.Error(err)
	}
}

func TestGrowthByPatchesEndsAtTheField(t *testing.T) {
	s := newSpace(t)
	s.kubectlApply(clusterManifest("c", "  patches: [{name: first, inline: {machine: {env: {A: a}}}}]"))

	big := fmt.Sprintf(`[{"op":"add","path":"/spec/patches/-","value":{"name":"p","inline":{"machine":{"env":{"A":%q}}}}}]`,
		strings.Repeat("x", 120<<10))

	var err error
	for range 9 {
		if _, err = s.try("patch", "ocl", "c", "--type=json", "-p", big); err != nil {
			break
		}
	}

	if err == nil || !strings.Contains(err.Error(), "spec: Too long: has 1081 KiB, at most 1024 KiB fit") {
		text := fmt.Sprint(err)
		t.Errorf("got %s", text[max(0, len(text)-300):])
	}
	// The refused patch changed nothing, and what is there can be edited and let go.
	s.run("patch", "ocl", "c", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/keep"]}}`)
	s.run("patch", "ocl", "c", "--type=merge", "-p", `{"metadata":{"finalizers":null},"spec":{"patches":null}}`)
}

// The library cannot tell who owns such a number and panics; the client saw a broken connection.
func TestNumberNoFloatCanHoldIsRefused(t *testing.T) {
	const release = `{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniHelmRelease","metadata":{"name":"r"},"spec":{
		"clusterRef":{"name":"c"},"kubeconfigSecretRef":{"name":"k"},"chart":{"chart":"oci://example.com/x","version":"1.0.0","values":{"a":[%s]}}}}`

	s := newSpace(t)
	create := func(number string) (string, error) {
		return s.tryInput(fmt.Sprintf(release, number), "create", "--raw", s.path("omnihelmreleases"), "-f", "-")
	}

	if out, err := create("1e400"); err == nil || !strings.Contains(err.Error(), "number 1e400 is too large: quote it") {
		t.Errorf("got %s %v", out, err)
	}

	if out, err := create("1e308"); err != nil || !strings.Contains(out, `"values":{"a":[1e308]}`) {
		t.Errorf("got %s %v", out, err)
	}
}
