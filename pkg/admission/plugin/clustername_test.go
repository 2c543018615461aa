package plugin_test

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	"omni.texashpc.com/omni-cluster-operator/pkg/admission/plugin"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/clientset/versioned/fake"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/informers/externalversions"
	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// storedClusters is an OmniCluster that the server has.
func storedClusters(namespace, name, connection, clusterName string) *v1alpha1.OmniCluster {
	return &v1alpha1.OmniCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.OmniClusterSpec{
			ConnectionRef: v1alpha1.LocalObjectReference{Name: connection},
			ClusterName:   clusterName,
		},
	}
}

// wanted is an OmniCluster that somebody creates.
func wanted(namespace, name, connection, clusterName string) *v1alpha1.OmniCluster {
	return &v1alpha1.OmniCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.OmniClusterSpec{
			ConnectionRef: v1alpha1.LocalObjectReference{Name: connection},
			ClusterName:   clusterName,
		},
	}
}

func requestOfClusters(obj *v1alpha1.OmniCluster, resource, subresource string) admission.Attributes {
	return admission.NewAttributesRecord(obj, nil, v1alpha1.SchemeGroupVersion.WithKind("OmniCluster"),
		obj.Namespace, obj.Name, v1alpha1.SchemeGroupVersion.WithResource(resource), subresource,
		admission.Create, &metav1.CreateOptions{}, false, nil)
}

// newClusterName has a synchronized view of the stored objects.
func newClusterName(t *testing.T, objects ...runtime.Object) *plugin.ClusterName {
	t.Helper()

	factory := externalversions.NewSharedInformerFactory(fake.NewClientset(objects...), 0)
	plugin := plugin.NewClusterName()
	plugin.SetInformers(factory)

	if err := plugin.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}

	ctx := await.Context(t)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	return plugin
}

func TestClusterName(t *testing.T) {
	deleting := storedClusters("default", "leaving", "main", "old")
	deleting.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	deleting.Finalizers = []string{"omni.texashpc.com/finalizer"}

	plugin := newClusterName(t,
		storedClusters("default", "one", "main", "production"),
		storedClusters("default", "staging", "main", ""),
		deleting,
	)

	tests := []struct {
		name string
		obj  *v1alpha1.OmniCluster
		want string
	}{
		{"a name of its own", wanted("default", "two", "main", "test"), ""},
		{
			"the same name", wanted("default", "two", "main", "production"),
			`spec.clusterName: Invalid value: "production": OmniCluster "one" already claims it on connection "main"; set another name`,
		},
		{
			"the same name by default", wanted("default", "production", "main", ""),
			`spec.clusterName: Invalid value: "production": OmniCluster "one" already claims it`,
		},
		{
			"another's default", wanted("default", "two", "main", "staging"),
			`spec.clusterName: Invalid value: "staging": OmniCluster "staging" already claims it`,
		},
		{
			"one that is being deleted", wanted("default", "two", "main", "old"),
			`OmniCluster "leaving" claims it until its deletion is finished on connection "main"`,
		},
		{"another connection", wanted("default", "two", "second", "production"), ""},
		{"another namespace", wanted("apps", "two", "main", "production"), ""},
		{"itself", wanted("default", "one", "main", "production"), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := plugin.Validate(t.Context(), requestOfClusters(test.obj, "omniclusters", ""), nil)

			switch {
			case test.want == "" && err != nil:
				t.Errorf("got %v", err)
			case test.want != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want Invalid with %q", err, test.want)
			}
		})
	}
}

func TestOtherRequestsPass(t *testing.T) {
	plugin := newClusterName(t, storedClusters("default", "one", "main", "production"))
	duplicate := wanted("default", "two", "main", "production")

	for name, attributes := range map[string]admission.Attributes{
		"subresource":    requestOfClusters(duplicate, "omniclusters", "status"),
		"other resource": requestOfClusters(duplicate, "omniworkers", ""),
	} {
		if err := plugin.Validate(t.Context(), attributes, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	if plugin.Handles(admission.Update) || plugin.Handles(admission.Delete) || !plugin.Handles(admission.Create) {
		t.Error("only creation can collide")
	}
}

func TestClusterNameSaysNothingBeforeItKnows(t *testing.T) {
	factory := externalversions.NewSharedInformerFactory(fake.NewClientset(storedClusters("default", "one", "main", "x")), 0)
	plugin := plugin.NewClusterName()
	plugin.SetInformers(factory)

	if err := plugin.Validate(t.Context(), requestOfClusters(wanted("default", "two", "main", "x"), "omniclusters", ""), nil); err != nil {
		t.Errorf("got %v before the cache is full", err)
	}
}

func TestClusterNameNeedsInformers(t *testing.T) {
	if err := plugin.NewClusterName().ValidateInitialization(); err == nil {
		t.Error("no error without informers")
	}
}
