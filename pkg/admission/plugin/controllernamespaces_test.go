package plugin_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"omni.texashpc.com/omni-cluster-operator/pkg/admission/plugin"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// heard collects the warnings of a request.
type heard []string

func (h *heard) AddWarning(_, text string) { *h = append(*h, text) }

func requestInNamespace(namespace string, resource schema.GroupVersionResource, subresource string) admission.Attributes {
	return admission.NewAttributesRecord(&v1alpha1.OmniMachine{}, nil, schema.GroupVersionKind{}, namespace, "x",
		resource, subresource, admission.Create, &metav1.CreateOptions{}, false, nil)
}

// change is a request for an OmniMachine of a namespace that nobody serves, which had the generation 1.
func change(operation admission.Operation, generation int64, finalizers ...string) admission.Attributes {
	object := &v1alpha1.OmniMachine{ObjectMeta: metav1.ObjectMeta{Generation: generation}}
	old := &v1alpha1.OmniMachine{ObjectMeta: metav1.ObjectMeta{Generation: 1, Finalizers: finalizers}}

	var now runtime.Object
	if operation == admission.Update {
		now = object
	}

	return admission.NewAttributesRecord(now, old, schema.GroupVersionKind{}, "apps", "x",
		v1alpha1.SchemeGroupVersion.WithResource("omnimachines"), "", operation, nil, false, nil)
}

func TestControllerNamespaces(t *testing.T) {
	machines := v1alpha1.SchemeGroupVersion.WithResource("omnimachines")
	long := strings.Repeat("n", 63)

	tests := []struct {
		name       string
		namespaces []string
		attributes admission.Attributes
		want       heard
	}{
		{"everywhere", nil, requestInNamespace("apps", machines, ""), nil},
		{"served", []string{"infra", "apps"}, requestInNamespace("apps", machines, ""), nil},
		{
			"not served", []string{"infra"}, requestInNamespace("apps", machines, ""),
			heard{`metadata.namespace: no controller serves "apps": it waits`},
		},
		{
			"longest name", []string{"infra"}, requestInNamespace(long, machines, ""),
			heard{`metadata.namespace: no controller serves "` + long + `": it waits`},
		},
		{"the spec changes", []string{"infra"}, change(admission.Update, 2), heard{`metadata.namespace: no controller serves "apps": it waits`}},
		{"a label changes", []string{"infra"}, change(admission.Update, 1), nil},
		{
			"a deletion that waits", []string{"infra"}, change(admission.Delete, 1, v1alpha1.Finalizer),
			heard{`metadata.namespace: no controller serves "apps": it waits`},
		},
		{"a deletion that ends", []string{"infra"}, change(admission.Delete, 1), nil},
		{"a change where it is served", []string{"apps"}, change(admission.Update, 2), nil},
		{"subresource", []string{"infra"}, requestInNamespace("apps", machines, "scale"), nil},
		{
			"not ours", []string{"infra"},
			requestInNamespace("apps", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, ""), nil,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got heard

			plugin := plugin.NewControllerNamespaces()
			plugin.SetControllerNamespaces(test.namespaces)

			if err := plugin.ValidateInitialization(); err != nil {
				t.Fatal(err)
			}

			if err := plugin.Validate(warning.WithWarningRecorder(t.Context(), &got), test.attributes, nil); err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}

			for _, text := range got {
				if len(text) > 120 {
					t.Errorf("%d characters: %s", len(text), text)
				}
			}
		})
	}
}
