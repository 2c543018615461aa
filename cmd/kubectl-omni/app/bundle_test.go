package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

const canary = "c4n4ry-s3cr3t"

// contentFields are those in which people put secrets: a bundle has none of them.
var contentFields = []string{
	"values", "inline", "job", "patches", "kernelArgs", "caBundle", "diff", "hash", "kubeconfigHash", "valuesDigest", "lastAttemptedDigest", "annotations",
	"labels", "healthchecks", "manifests", "secretTemplate", "providerData",
}

// A canary in every content of every kind shows in no bundle.
func TestBundleHasNoContents(t *testing.T) {
	s := newSession(t)

	for _, file := range []string{"omniconnection", "omnicluster", "omnicontrolplane", "omniworkers", "omnimachine", "omnikubeconfigexport", "omnisecretsync", "omnihelmrelease"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "pkg", "apis", "omni", "v1alpha1", "testdata", file+".json"))
		if err != nil {
			t.Fatal(err)
		}

		var content map[string]any
		if err = yaml.Unmarshal(text, &content); err != nil {
			t.Fatal(err)
		}

		planted := 0

		spec := plant(content["spec"], false, &planted)
		if planted == 0 {
			t.Errorf("%s: nothing was planted", file)
		}

		content["metadata"].(map[string]any)["annotations"] = map[string]any{"example.com/token": canary, v1alpha1.AnnotationTimeZone: "UTC"}

		shown := fmt.Sprint(allowedOf(content["kind"].(string)).pick(map[string]any{"metadata": content["metadata"], "spec": spec, "status": content["status"]}), ours(content))
		if strings.Contains(shown, canary) {
			t.Errorf("%s: %s", file, shown)
		}

		if !strings.Contains(shown, "nameValue") || !strings.Contains(shown, v1alpha1.AnnotationTimeZone) {
			t.Errorf("%s: nothing is left: %s", file, shown)
		}
	}

	output, _, err := s.run("support-bundle")
	if err != nil || strings.Count(output, "\n---\n") < 10 || !strings.Contains(output, "AwaitingApproval") {
		t.Errorf("%v\n%s", err, output)
	}
}

// plant puts a canary into every text below the fields that hold contents.
func plant(value any, inside bool, planted *int) any {
	switch v := value.(type) {
	case map[string]any:
		for key, below := range v {
			content := inside
			for _, name := range contentFields {
				content = content || key == name
			}

			v[key] = plant(below, content, planted)
		}
	case []any:
		for i := range v {
			v[i] = plant(v[i], inside, planted)
		}
	case string:
		if inside {
			*planted++

			return canary
		}
	}

	return value
}

// Every field that is allowed exists: a renamed field must not be missing in silence.
func TestBundleFieldsExist(t *testing.T) {
	kinds := map[string]any{
		"OmniConnection": v1alpha1.OmniConnection{}, "OmniCluster": v1alpha1.OmniCluster{}, "OmniControlPlane": v1alpha1.OmniControlPlane{},
		"OmniWorkers": v1alpha1.OmniWorkers{}, "OmniMachine": v1alpha1.OmniMachine{}, "OmniKubeconfigExport": v1alpha1.OmniKubeconfigExport{},
		"OmniSecretSync": v1alpha1.OmniSecretSync{}, "OmniHelmRelease": v1alpha1.OmniHelmRelease{}, "OmniRolloutPolicy": v1alpha1.OmniRolloutPolicy{},
	}

	for kind, paths := range kindFields {
		for _, path := range paths {
			if !exists(reflect.TypeOf(kinds[kind]), strings.Split(path, ".")) {
				t.Errorf("%s has no field %s", kind, path)
			}
		}
	}
}

func exists(in reflect.Type, path []string) bool {
	for in.Kind() == reflect.Pointer || in.Kind() == reflect.Slice {
		in = in.Elem()
	}

	if len(path) == 0 || path[0] == "*" {
		return true
	}

	if in.Kind() != reflect.Struct {
		return false
	}

	for i := range in.NumField() {
		name, rest, _ := strings.Cut(in.Field(i).Tag.Get("json"), ",")
		if name == path[0] && exists(in.Field(i).Type, path[1:]) || name == "" && strings.Contains(rest, "inline") && exists(in.Field(i).Type, path) {
			return true
		}
	}

	return false
}

func TestRedaction(t *testing.T) {
	r := anonymizer{salt: "x"}
	text := r.text("https://omni.example.com:443 (10.1.2.3, fd00::1) refuses omniclusters.omni.texashpc.com v1.35.1 at 2026-11-23T12:00:00Z; omni.example.com")

	for _, gone := range []string{"example.com", "10.1.2.3", "fd00::1"} {
		if strings.Contains(text, gone) {
			t.Errorf("%q is still in %q", gone, text)
		}
	}

	for _, kept := range []string{"omniclusters.omni.texashpc.com", "v1.35.1", "2026-11-23T12:00:00Z"} {
		if !strings.Contains(text, kept) {
			t.Errorf("%q is not in %q any more", kept, text)
		}
	}

	if strings.Count(text, "host-"+r.hash("omni.example.com")) != 2 {
		t.Errorf("one host has two names: %q", text)
	}
}

// TestRedactionOfAddresses has addresses beside other characters that addresses are made of.
func TestRedactionOfAddresses(t *testing.T) {
	r := anonymizer{salt: "x"}

	for text, addresses := range map[string][]string{
		"dial tcp 10.5.0.2:50000: refused":          {"10.5.0.2"},
		"https://10.0.0.1:6443/version":             {"10.0.0.1"},
		"failed:10.0.0.1":                           {"10.0.0.1"},
		"10.244.0.0/16, fd00::/8":                   {"10.244.0.0", "fd00::"},
		"at 192.168.1.7.":                           {"192.168.1.7"},
		"listens on ::1, not on fe80::1%eth0":       {"::1", "fe80::1"},
		"dial [fd00:1:2::3]:50000: timeout":         {"fd00:1:2::3"},
		"fd00::1: refused":                          {"fd00::1"},
		"::ffff:10.0.0.9 refuses":                   {"10.0.0.9"},
		"2001:db8:0:0:0:0:0:1 is gone":              {"2001:db8:0:0:0:0:0:1"},
		"v1.35.1 at 12:30:45 [::] a:b sha256:ab:cd": nil,
	} {
		got := r.text(text)
		for _, address := range addresses {
			if strings.Contains(got, address) {
				t.Errorf("%q is still in %q", address, got)
			}
		}

		if len(addresses) == 0 && got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestRedactionOfShortNames has hostnames without a dot: what one document names as a host is no longer in any text.
func TestRedactionOfShortNames(t *testing.T) {
	documents := []map[string]any{
		{"kind": "Pod", "spec": map[string]any{"nodeName": "rack7-node1"}},
		{"kind": "Pod", "spec": map[string]any{"nodeName": "rack7-node10"}},
		{"kind": "Event", "note": "rack7-node10 and rack7-node1 restart rack7-node100"},
	}
	(&bundle{documents: documents, hosts: hostNames{}}).finish(&anonymizer{salt: "x"})

	r := anonymizer{salt: "x"}
	want := "host-" + r.hash("rack7-node10") + " and host-" + r.hash("rack7-node1") + " restart rack7-node100"

	if got := documents[2]["note"]; got != want || documents[0]["spec"].(map[string]any)["nodeName"] != "host-"+r.hash("rack7-node1") {
		t.Errorf("%v, want %q", documents, want)
	}
}

// TestRedactionOfOurWords has a node with a name that everything of ours has.
func TestRedactionOfOurWords(t *testing.T) {
	r := &anonymizer{salt: "x"}
	r.learn(hostNames{"omni": true, "": true, "rack1": true})

	if got := r.document(map[string]any{"omni": "omni.texashpc.com/v1alpha1 on rack1"})["omni"]; got != "omni.texashpc.com/v1alpha1 on host-"+r.hash("rack1") {
		t.Error(got)
	}
}

func TestBundleIsNotOverwritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bundle.yaml")
	s := newSession(t)

	if _, _, err := s.run("support-bundle", "--file", file, "--redact"); err != nil {
		t.Fatal(err)
	}

	if _, _, err := s.run("support-bundle", "--file", file); err == nil {
		t.Error("a bundle that is there was overwritten")
	}

	if _, err := s.client.OmniV1alpha1().OmniClusters("fleet").Get(t.Context(), "edge-01", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// TestBundleOfNothing has an API server that refuses all our kinds: that is an error, and no file.
func TestBundleOfNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bundle.yaml")
	s := newSession(t)
	s.refuse("*", errors.New("connection refused"))

	if output, _, status, err := s.execute("support-bundle", "--file", file); err == nil || !strings.Contains(err.Error(), "connection refused") || status != 1 {
		t.Errorf("%v, status %d\n%s", err, status, output)
	}

	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was written: %v", err)
	}
}

// TestBundleWithoutOurObjects: while omni-apiserver is down, a bundle has why: its Pods and logs, and the events. The status says
// that something is missing.
func TestBundleWithoutOurObjects(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "omni-apiserver-0", Namespace: "operator", Labels: map[string]string{"app.kubernetes.io/part-of": "omni-cluster-operator"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "omni-apiserver"}}},
	}
	event := eventAbout("old", "omni.texashpc.com/v1alpha1", "OmniCluster", "the last one", today)

	for want, object := range map[string]runtime.Object{"pod: omni-apiserver-0\ntext: |\n  fake logs": pod, "message: the last one": event} {
		file := filepath.Join(t.TempDir(), "bundle.yaml")
		s := newSession(t)
		s.hub = kubefake.NewSimpleClientset(object)
		s.refuse("*", errors.New("connection refused"))

		_, shown, status, err := s.execute("support-bundle", "--operator-namespace", "operator", "--file", file)
		if err == nil || !strings.Contains(err.Error(), "none of our objects can be read: list omniconnections: connection refused") || status != 1 {
			t.Errorf("%v, status %d", err, status)
		}

		if !strings.Contains(shown, "Missing: omniclusters: connection refused") {
			t.Errorf("shown: %s", shown)
		}

		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), want) || !strings.Contains(string(text), "- 'omniclusters: connection refused'") {
			t.Errorf("%v, no %q, or nothing that is missing, in\n%s", err, want, text)
		}
	}
}

// TestBundleOfAnEmptyNamespace: that there is nothing is worth a bundle.
func TestBundleOfAnEmptyNamespace(t *testing.T) {
	s := newSession(t)

	if output, _, err := s.run("support-bundle", "-n", "empty"); err != nil || !strings.Contains(output, "kind: SupportBundle") {
		t.Errorf("%v\n%s", err, output)
	}
}

// TestBundleIsInterrupted: half a bundle is not written.
func TestBundleIsInterrupted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bundle.yaml")
	s := newSession(t)
	ctx, interrupt := context.WithCancel(t.Context())
	s.hub.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		interrupt()

		return true, nil, ctx.Err()
	})

	if _, _, status, err := s.executeUntil(ctx, "support-bundle", "--file", file); !errors.Is(err, context.Canceled) || status != 1 {
		t.Errorf("%v, status %d", err, status)
	}

	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was written: %v", err)
	}
}

// The version of the server is asked for by a call that knows no context.
func TestBundleIsInterruptedAtOnce(t *testing.T) {
	s := newSession(t)
	ctx, interrupt := context.WithCancel(t.Context())
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })

	s.hub.PrependReactor("get", "version", func(clienttesting.Action) (bool, runtime.Object, error) {
		interrupt()
		<-end

		return true, nil, nil
	})

	if output, _, status, err := s.executeUntil(ctx, "support-bundle"); !errors.Is(err, context.Canceled) || status != 1 || output != "" {
		t.Errorf("%v, status %d\n%s", err, status, output)
	}
}
