package apiserver_test

import (
	"encoding/json"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// TestMetadataClient: the namespace controller and the garbage collector use a client without Go types. It prefers
// protobuf, which our types do not have.
func TestMetadataClient(t *testing.T) {
	s := startServer(t)

	client, err := metadata.NewForConfig(metadata.ConfigFor(&rest.Config{Host: s.url}))
	if err != nil {
		t.Fatal(err)
	}

	machines := s.client.OmniV1alpha1().OmniMachines("default")
	created := machine("one", "production", "30303031-3233-3435-3637-383930313231")
	created.Finalizers = []string{"example.com/keep"}

	if _, err := machines.Create(t.Context(), created, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	untyped := client.Resource(v1alpha1.SchemeGroupVersion.WithResource("omnimachines")).Namespace("default")

	list, err := untyped.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "one" {
		t.Fatalf("list %+v, %v", list, err)
	}

	if err := untyped.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatalf("delete collection: %v", err)
	}

	one, err := untyped.Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil || one.DeletionTimestamp == nil || one.Generation != 2 {
		t.Fatalf("get %+v, %v", one, err)
	}

	if _, err := untyped.Patch(t.Context(), "one", "application/merge-patch+json",
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatalf("patch: %v", err)
	}

	if _, err := untyped.Get(t.Context(), "one", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get after the last finalizer: %v", err)
	}
}

func TestProtobufIsNotOffered(t *testing.T) {
	s := startServer(t)

	status, body := s.get(t, clusters, "application/vnd.kubernetes.protobuf")
	if status != http.StatusNotAcceptable {
		t.Errorf("status %d: %s", status, body)
	}

	status, body = s.get(t, clusters, "application/vnd.kubernetes.protobuf, application/json")
	if status != http.StatusOK || !json.Valid(body) {
		t.Errorf("status %d: %s", status, body)
	}
}
