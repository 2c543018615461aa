package app

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/version"
)

// TestVersion checks what is said of each program, and of an Omni whose version is known and one whose is not.
func TestVersion(t *testing.T) {
	s := newSession(t)
	hub := kubefake.NewSimpleClientset(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "omni-controller-1", Namespace: "operator", Labels: map[string]string{"app.kubernetes.io/part-of": "omni-cluster-operator"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "omni-controller", Image: "registry.example.com/omni-cluster-operator:v0.1.0"}}},
	})
	s.hub = hub

	for name, server := range map[string]*v1alpha1.OmniServerStatus{
		"known":   {Version: "v1.11.0\x1b[2J", APIVersion: 3, Instance: "acme"},
		"unknown": nil,
	} {
		connection := &v1alpha1.OmniConnection{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "fleet"}, Status: v1alpha1.OmniConnectionStatus{Omni: server}}
		if err := s.client.Tracker().Add(connection); err != nil {
			t.Fatal(err)
		}
	}

	output, _, err := s.run("version", "--operator-namespace", "operator")
	if err != nil {
		t.Fatal(err)
	}

	for _, want := range []string{version.Get().String(), "omni-cluster-operator:v0.1.0", "OmniConnection/known", "v1.11.0", "acme", "OmniConnection/unknown"} {
		if !strings.Contains(output, want) {
			t.Errorf("no %q in\n%s", want, output)
		}
	}

	if strings.Contains(output, "\x1b") {
		t.Errorf("what Omni says reaches the terminal:\n%q", output)
	}

	hub.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("forbidden") })

	if output, _, err = s.run("version"); err != nil || !strings.Contains(output, "OmniConnection/known") {
		t.Errorf("without a right to read Pods: %v\n%s", err, output)
	}

	s.client.PrependReactor("list", "omniconnections", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no answer") })

	if output, _, err = s.run("version"); err == nil || !strings.Contains(output, version.Get().String()) {
		t.Errorf("without an API server: %v\n%s", err, output)
	}
}
