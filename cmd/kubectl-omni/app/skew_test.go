package app

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// TestOlderServer has an API server without OmniRolloutPolicy: what needs it says so, and everything else works.
func TestOlderServer(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	older := func() *session {
		s := newSession(t)
		unknown := func(action clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewGenericServerResponse(http.StatusNotFound, action.GetVerb(),
				v1alpha1.Resource("omnirolloutpolicies"), "", "404 page not found", 0, true)
		}
		s.client.PrependReactor("*", "omnirolloutpolicies", unknown)
		s.raw.PrependReactor("*", "omnirolloutpolicies", unknown)

		return s
	}

	for _, test := range []struct {
		args   []string
		says   string
		refuse bool
	}{
		{args: []string{"tree", "edge-01"}, says: "UnknownKind"},
		{args: []string{"status", "edge-01"}, says: "edge-01"},
		{args: []string{"support-bundle"}, says: "omnirolloutpolicies: UnknownKind"},
		{args: []string{"suspend", "edge-01"}, says: "suspended"},
		{args: []string{"hold", "production"}, says: "older than this plugin", refuse: true},
		{args: []string{"promote", "production", "prod", "--yes"}, says: "older than this plugin", refuse: true},
	} {
		output, _, err := older().run(test.args...)
		if err != nil {
			output += err.Error()
		}

		if (err != nil) != test.refuse || !strings.Contains(output, test.says) {
			t.Errorf("%v: %v, want %q in\n%s", test.args, err, test.says, output)
		}
	}
}

// TestNewerServer has an API server with a field that the plugin does not know: -o shows it.
func TestNewerServer(t *testing.T) {
	s := newSession(t)
	clusters := s.raw.Resource(v1alpha1.SchemeGroupVersion.WithResource("omniclusters")).Namespace("fleet")

	newer, err := clusters.Get(t.Context(), "edge-01", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	if err = unstructured.SetNestedField(newer.Object, "of a newer version", "status", "field"); err != nil {
		t.Fatal(err)
	}

	if _, err = clusters.Update(t.Context(), newer, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}

	for _, args := range [][]string{{"status", "edge-01", "-o", "yaml"}, {"status", "-o", "json"}} {
		if output, _, err := s.run(args...); err != nil || !strings.Contains(output, "of a newer version") {
			t.Errorf("%v: %v\n%s", args, err, output)
		}
	}
}
