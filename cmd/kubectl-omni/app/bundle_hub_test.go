package app

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// eventAbout is an event about an object.
func eventAbout(name, apiVersion, kind, message string, at time.Time) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: name, Namespace: "fleet"},
		InvolvedObject: corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Name: "edge-01"},
		Reason:         "Synced", Type: "Normal", Message: message, EventTime: metav1.NewMicroTime(at),
	}
}

// TestBundleOfTheHub has events about our objects and about others, and a Pod of our programs beside another one.
func TestBundleOfTheHub(t *testing.T) {
	noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	pod := func(name, label string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "operator", Labels: map[string]string{"app.kubernetes.io/part-of": label}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "omni-controller", Env: []corev1.EnvVar{{Name: "TOKEN", Value: canary}}, Args: []string{canary},
			}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
				Name: "omni-controller", Image: "registry.example.com/omni-cluster-operator:v0.1.0", RestartCount: 2,
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137, Message: canary}},
			}}},
		}
	}

	s := newSession(t)
	s.hub = kubefake.NewSimpleClientset(
		eventAbout("old", "omni.texashpc.com/v1alpha1", "OmniCluster", "the older one", noon.Add(-time.Hour)),
		eventAbout("new", "omni.texashpc.com/v1alpha1", "OmniCluster", "Omni took the changes", noon),
		eventAbout("other", "v1", "Secret", canary, noon),
		pod("omni-controller-1", "omni-cluster-operator"), pod("other", "something-else"),
	)

	output, _, err := s.run("support-bundle", "--operator-namespace", "operator")
	if err != nil {
		t.Fatal(err)
	}

	if strings.Contains(output, canary) || strings.Contains(output, "pod: other") {
		t.Errorf("it has what is not ours:\n%s", output)
	}

	if older, newer := strings.Index(output, "the older one"), strings.Index(output, "Omni took the changes"); newer < 0 || older < newer {
		t.Errorf("events are not there, or the oldest comes first:\n%s", output)
	}

	for _, want := range []string{"kind: Log\npod: omni-controller-1\ntext: |\n  fake logs", "reason: OOMKilled", "restarts: 2", "omni-cluster-operator:v0.1.0"} {
		if !strings.Contains(output, want) {
			t.Errorf("no %q in\n%s", want, output)
		}
	}
}

// TestRedactionOfNodes has names of nodes where a bundle leaves them out, or does not call them so, and a text with these names; and
// names of domains in keys.
func TestRedactionOfNodes(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	s := newSession(t)
	noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	names := []string{"rack1-hub", "rack2-label", "rack8-wanted", "corp.example"}

	cluster := s.cluster("edge-01").DeepCopy()
	cluster.Labels = map[string]string{
		"kubernetes.io/hostname": "rack2-label", "team.corp.example/owner": "us", "rack2-label": "yes", v1alpha1.GroupName + "/kept": "kept-value",
	}
	s.put("omniclusters", cluster)

	policy := policyOf(s).DeepCopy()
	policy.Spec.ClusterSelector = &v1alpha1.ClusterSelector{
		MatchLabels:      map[string]string{"team.corp.example/owner": "us"},
		MatchExpressions: []v1alpha1.ClusterSelectorRequirement{{Key: "kubernetes.io/hostname", Operator: metav1.LabelSelectorOpIn, Values: []string{"rack8-wanted"}}},
	}
	s.put("omnirolloutpolicies", policy)

	event := func(name, message string) *corev1.Event {
		return eventAbout(name, "omni.texashpc.com/v1alpha1", "OmniCluster", message, noon)
	}
	s.hub = kubefake.NewSimpleClientset(
		event("all", "no kubelet: "+strings.Join(names, ", ")),
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "omni-controller-1", Namespace: "operator", Labels: map[string]string{"app.kubernetes.io/part-of": "omni-cluster-operator"}},
			Spec:       corev1.PodSpec{NodeName: "rack1-hub"},
		},
	)

	output, _, err := s.run("support-bundle", "--redact", "--operator-namespace", "operator")
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range names {
		if strings.Contains(output, name) {
			t.Errorf("%s is in the bundle", name)
		}
	}

	for _, want := range []string{"no kubelet: host-", "  kubernetes.io/hostname: host-", "/owner: us", v1alpha1.GroupName + "/kept: kept-value"} {
		if !strings.Contains(output, want) {
			t.Errorf("no %q in\n%s", want, output)
		}
	}
}

// TestLogOfABusyProgram: of a log that is too long the newest lines are there, and the bundle says that older ones are not. The
// server counts the size that it is told from the oldest line on, as kubelet does. Lines of the audit log are left out, and counted.
func TestLogOfABusyProgram(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lines, _ := strconv.Atoi(r.URL.Query().Get("tailLines"))
		var text strings.Builder
		for i := range lines {
			fmt.Fprintf(&text, "line %d %s\n", i+1, strings.Repeat("x", 100))
			fmt.Fprintf(&text, "%s %s\n", auditLine, strings.Repeat("user", 3000))
		}

		sent := text.String()
		if limit, err := strconv.Atoi(r.URL.Query().Get("limitBytes")); err == nil {
			sent = sent[:limit]
		}

		_, _ = io.WriteString(w, sent)
	}))
	t.Cleanup(server.Close)

	hub, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}

	end, err := lastLines(t.Context(), hub, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "operator", Name: "omni-apiserver-0"}}, "omni-apiserver")
	if err != nil {
		t.Fatal(err)
	}

	text := string(end.kept)
	lines := strings.Split(strings.TrimSpace(text), "\n")

	if last := lines[len(lines)-1]; !end.cut || len(text) > maxLogBytes || !strings.HasPrefix(last, "line 20000 ") || !strings.HasPrefix(lines[0], "line ") {
		t.Errorf("cut: %t, %d bytes, from %.10q to %.10q", end.cut, len(text), lines[0], last)
	}

	if end.audited != maxLogLines || strings.Contains(text, "user") {
		t.Errorf("%d lines of the audit log were left out", end.audited)
	}
}

// TestBundleWithoutRights: what may not be read is named, and the rest is there.
func TestBundleWithoutRights(t *testing.T) {
	s := newSession(t)
	hub := kubefake.NewSimpleClientset()
	hub.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("is forbidden")
	})
	s.hub = hub

	output, shown, err := s.run("support-bundle")
	if err != nil {
		t.Fatal(err)
	}

	if want := "Missing: Event: is forbidden\nMissing: Pod: is forbidden\n"; shown != want {
		t.Errorf("shown: %q, want %q", shown, want)
	}

	first, _, _ := strings.Cut(output, "\n---\n")

	var about struct{ Missing []string }
	if err := yaml.Unmarshal([]byte(first), &about); err != nil {
		t.Fatal(err)
	}

	if len(about.Missing) != 2 || !strings.HasPrefix(about.Missing[0], "Event: ") || !strings.HasPrefix(about.Missing[1], "Pod: ") {
		t.Errorf("missing: %q", about.Missing)
	}

	if strings.Count(output, "kind: OmniCluster\n") == 0 {
		t.Errorf("our objects are not there:\n%s", output)
	}
}

// The Pods of both programs have the label by which a bundle finds them.
func TestBundleFindsOurPods(t *testing.T) {
	key, value, _ := strings.Cut(programSelector, "=")

	for _, program := range []string{"apiserver", "controller"} {
		manifest, err := os.ReadFile("../../../artifacts/kustomize/base/" + program + ".yaml")
		if err != nil {
			t.Fatal(err)
		}

		_, template, found := strings.Cut(string(manifest), "\n  template:\n")
		labels, _, _ := strings.Cut(template, "\n    spec:\n")

		if !found || !strings.Contains(labels, key+": "+value) {
			t.Errorf("the Pods of %s have other labels:\n%s", program, labels)
		}
	}
}
