package omnicluster

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apiserver/pkg/registry/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
)

// stored is a store that holds these objects; it checks what the subresource asks for.
type stored struct {
	t       *testing.T
	cluster *v1alpha1.OmniCluster
	list    runtime.Object
}

func (s stored) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if s.cluster == nil || s.cluster.Name != name {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("omniclusters"), name)
	}

	return s.cluster, nil
}

func (s stored) List(_ context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	if got := options.FieldSelector.String(); got != "spec.clusterRef.name=production" {
		s.t.Errorf("selector %q", got)
	}

	return s.list, nil
}

func controlPlane() v1alpha1.OmniControlPlane {
	size := intstr.FromInt32(3)

	return v1alpha1.OmniControlPlane{
		ObjectMeta: metav1.ObjectMeta{Name: "production-cp", Namespace: "default"},
		Spec: v1alpha1.OmniControlPlaneSpec{
			ClusterRef:         v1alpha1.LocalObjectReference{Name: "production"},
			MachineSetMachines: v1alpha1.MachineSetMachines{MachineClass: &v1alpha1.MachineClass{Name: "large", Size: &size}},
		},
	}
}

func templateOf(t *testing.T, cluster *v1alpha1.OmniCluster, controlPlanes ...v1alpha1.OmniControlPlane) *TemplateREST {
	t.Helper()

	return NewTemplateREST(TemplateSources{
		Clusters:      stored{t: t, cluster: cluster},
		ControlPlanes: stored{t: t, list: &v1alpha1.OmniControlPlaneList{Items: controlPlanes}},
		Workers:       stored{t: t, list: &v1alpha1.OmniWorkersList{}},
		Machines:      stored{t: t, list: &v1alpha1.OmniMachineList{}},
	}, template.Hub{ID: "id-of-hub-1", Name: "hub-1"})
}

func production() *v1alpha1.OmniCluster {
	cluster := valid()
	cluster.Name, cluster.Namespace, cluster.UID = "production", "default", "9d1f"
	cluster.Spec.Patches = []v1alpha1.Patch{{
		Name: "secret",
		ValueFrom: &v1alpha1.ValueSource{
			SecretKeyRef: &v1alpha1.KeyReference{Name: "patches", Key: "token.yaml"},
		},
	}}

	return cluster
}

func TestTemplate(t *testing.T) {
	got, err := templateOf(t, production(), controlPlane()).Get(t.Context(), "production", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	stream, flush, mediaType, err := got.(rest.ResourceStreamer).InputStream(t.Context(), "", "")
	if err != nil || flush || mediaType != "application/yaml" {
		t.Fatalf("stream of %q, flush %t, %v", mediaType, flush, err)
	}
	defer stream.Close()

	text, err := io.ReadAll(stream)
	if err != nil {
		t.Fatal(err)
	}

	want := `kind: Cluster
name: production
annotations:
  omni.texashpc.com/hub-id: id-of-hub-1
  omni.texashpc.com/management-cluster: hub-1
  omni.texashpc.com/owner-name: production
  omni.texashpc.com/owner-namespace: default
  omni.texashpc.com/owner-uid: 9d1f
kubernetes:
  version: v1.34.1
talos:
  version: v1.11.2
patches:
  - name: secret
    inline: |
      # valueFrom: key "token.yaml" of Secret "patches" (the content is not shown)
---
kind: ControlPlane
machineClass:
  name: large
  size: 3
`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("template (-want +got):\n%s", diff)
	}
}

func TestTemplateErrors(t *testing.T) {
	second := controlPlane()
	second.Name = "production-cp-2"

	tests := []struct {
		name     string
		rendered *TemplateREST
		code     int32
		reason   metav1.StatusReason
		message  string
	}{
		{
			"no cluster", templateOf(t, nil), http.StatusNotFound, "NotFound",
			`omniclusters.omni.texashpc.com "production" not found`,
		},
		{
			"no control plane", templateOf(t, production()), http.StatusUnprocessableEntity, "ControlPlaneMissing",
			`OmniCluster "production" has no template: no OmniControlPlane names OmniCluster "production" yet`,
		},
		{
			"two control planes", templateOf(t, production(), controlPlane(), second),
			http.StatusUnprocessableEntity, "MultipleControlPlanes",
			`OmniCluster "production" has no template: OmniControlPlanes "production-cp" and "production-cp-2" both ` +
				`name OmniCluster "production"; a cluster has one: delete the other`,
		},
	}

	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := test.rendered.Get(t.Context(), "production", &metav1.GetOptions{})

			status, ok := err.(apierrors.APIStatus)
			if !ok {
				t.Fatalf("got %v, want a Status", err)
			}

			got := status.Status()
			if got.Code != test.code || got.Reason != test.reason || got.Message != test.message {
				t.Errorf("got %d %s %q, want %d %s %q", got.Code, got.Reason, got.Message, test.code, test.reason, test.message)
			}
		})
	}
}

func TestTemplateDescribesItself(t *testing.T) {
	rendered := templateOf(t, production())

	if diff := cmp.Diff([]string{"application/yaml"}, rendered.ProducesMIMETypes("GET")); diff != "" {
		t.Errorf("GET (-want +got):\n%s", diff)
	}

	if got := rendered.ProducesMIMETypes("DELETE"); got != nil {
		t.Errorf("DELETE: %v", got)
	}

	if got := rendered.ProducesObject("GET"); got != "" {
		t.Errorf("object %T", got)
	}
}
