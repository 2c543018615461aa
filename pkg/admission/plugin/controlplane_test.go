package plugin_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"omni.texashpc.com/omni-cluster-operator/pkg/admission/plugin"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/clientset/versioned/fake"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/informers/externalversions"
	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// heardWarnings collects the warnings of a request.
type heardWarnings []string

func (h *heardWarnings) AddWarning(_, text string) { *h = append(*h, text) }

func storedControlPlanes(namespace, name, cluster string) *v1alpha1.OmniControlPlane {
	return &v1alpha1.OmniControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.OmniControlPlaneSpec{ClusterRef: v1alpha1.LocalObjectReference{Name: cluster}},
	}
}

func requestOfControlPlanes(namespace, name, cluster, resource string) admission.Attributes {
	obj := &v1alpha1.OmniControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.OmniControlPlaneSpec{ClusterRef: v1alpha1.LocalObjectReference{Name: cluster}},
	}

	return admission.NewAttributesRecord(obj, nil, v1alpha1.SchemeGroupVersion.WithKind("OmniControlPlane"),
		namespace, name, v1alpha1.SchemeGroupVersion.WithResource(resource), "",
		admission.Create, &metav1.CreateOptions{}, false, nil)
}

// update is a request that changes the cluster of "second" in the namespace default.
func update(before, after string) admission.Attributes {
	return admission.NewAttributesRecord(storedControlPlanes("default", "second", after), storedControlPlanes("default", "second", before), v1alpha1.SchemeGroupVersion.WithKind("OmniControlPlane"),
		"default", "second", v1alpha1.SchemeGroupVersion.WithResource("omnicontrolplanes"), "",
		admission.Update, &metav1.UpdateOptions{}, false, nil)
}

func newControlPlaneCount(t *testing.T, objects ...runtime.Object) *plugin.ControlPlaneCount {
	t.Helper()

	factory := externalversions.NewSharedInformerFactory(fake.NewClientset(objects...), 0)
	plugin := plugin.NewControlPlaneCount()
	plugin.SetInformers(factory)

	if err := plugin.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}

	ctx := await.Context(t)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	return plugin
}

func TestControlPlaneCount(t *testing.T) {
	deleting := storedControlPlanes("default", "leaving", "replaced")
	deleting.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	deleting.Finalizers = []string{"omni.texashpc.com/finalizer"}

	long := strings.Repeat("n", 60)
	plugin := newControlPlaneCount(t,
		storedControlPlanes("default", "first", "production"), deleting, storedControlPlanes("default", long, "named"))

	tests := []struct {
		name       string
		attributes admission.Attributes
		want       heardWarnings
	}{
		{"first of its cluster", requestOfControlPlanes("default", "second", "staging", "omnicontrolplanes"), nil},
		{
			"second of its cluster", requestOfControlPlanes("default", "second", "production", "omnicontrolplanes"),
			heardWarnings{`spec.clusterRef.name: OmniControlPlane "first" names this cluster too: it stalls until one is deleted`},
		},
		{
			"the first has a long name", requestOfControlPlanes("default", "second", "named", "omnicontrolplanes"),
			heardWarnings{`spec.clusterRef.name: another OmniControlPlane names this cluster too: it stalls until one is deleted`},
		},
		{"the first leaves", requestOfControlPlanes("default", "second", "replaced", "omnicontrolplanes"), nil},
		{"another namespace", requestOfControlPlanes("apps", "second", "production", "omnicontrolplanes"), nil},
		{"itself", requestOfControlPlanes("default", "first", "production", "omnicontrolplanes"), nil},
		{
			"a second one by an update", update("staging", "production"),
			heardWarnings{`spec.clusterRef.name: OmniControlPlane "first" names this cluster too: it stalls until one is deleted`},
		},
		{"an update of a second one", update("production", "production"), nil},
		{"another resource", requestOfControlPlanes("default", "second", "production", "omniworkers"), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got heardWarnings

			if !plugin.Handles(test.attributes.GetOperation()) {
				t.Fatalf("it is not asked about %s", test.attributes.GetOperation())
			}

			ctx := warning.WithWarningRecorder(t.Context(), &got)
			if err := plugin.Validate(ctx, test.attributes, nil); err != nil {
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

func TestControlPlaneCountSaysNothingBeforeItKnows(t *testing.T) {
	plugin := plugin.NewControlPlaneCount()
	plugin.SetInformers(externalversions.NewSharedInformerFactory(fake.NewClientset(), 0))

	if err := plugin.Validate(t.Context(), requestOfControlPlanes("default", "a", "b", "omnicontrolplanes"), nil); err != nil {
		t.Errorf("got %v before the cache is full", err)
	}
}

func TestControlPlaneCountNeedsInformers(t *testing.T) {
	if err := plugin.NewControlPlaneCount().ValidateInitialization(); err == nil {
		t.Error("no error without informers")
	}
}
