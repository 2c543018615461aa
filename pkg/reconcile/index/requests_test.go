package index

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// cacheOf is a cache with the indexes of this package. Its lists have to have a deadline.
func cacheOf(t *testing.T, problem error, objects ...client.Object) client.Client {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, bounded := ctx.Deadline(); !bounded {
				t.Errorf("a list of %T has no deadline", list)
			}

			return errors.Join(problem, c.List(ctx, list, options...))
		},
	})

	for _, i := range All() {
		if _, isMetadata := i.Object.(*metav1.PartialObjectMetadata); !isMetadata {
			builder = builder.WithIndex(i.Object, i.Name, i.Values)
		}
	}

	return builder.Build()
}

func inPlace(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "team", Name: name} }

// TestOfConnection looks for the copies in the clusters of a connection; one cluster belongs to another one.
func TestOfConnection(t *testing.T) {
	cluster := func(name, connection string) client.Object {
		return &v1alpha1.OmniCluster{ObjectMeta: inPlace(name), Spec: v1alpha1.OmniClusterSpec{ConnectionRef: v1alpha1.LocalObjectReference{Name: connection}}}
	}
	syncOf := func(name, cluster string) client.Object {
		return &v1alpha1.OmniSecretSync{ObjectMeta: inPlace(name), Spec: v1alpha1.OmniSecretSyncSpec{ClusterRef: v1alpha1.LocalObjectReference{Name: cluster}}}
	}
	objects := []client.Object{
		cluster("one", "omni"), cluster("two", "omni"), cluster("three", "other"),
		syncOf("a", "one"), syncOf("b", "two"), syncOf("c", "three"), syncOf("d", "one"),
	}

	request := func(name string) reconcile.Request {
		return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "team", Name: name}}
	}

	for name, test := range map[string]struct {
		problem error
		want    []reconcile.Request
	}{
		"the cache is there":       {nil, []reconcile.Request{request("a"), request("d"), request("b")}},
		"the cache cannot be read": {errors.New("the cache is not started"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			cache := cacheOf(t, test.problem, objects...)
			ofCluster := func(ctx context.Context, cluster client.Object) []reconcile.Request {
				return Requests(ctx, cache, &v1alpha1.OmniSecretSyncList{}, client.InNamespace(cluster.GetNamespace()), client.MatchingFields{ByCluster: cluster.GetName()})
			}

			got := OfConnection(cache, ofCluster)(t.Context(), &v1alpha1.OmniConnection{ObjectMeta: inPlace("omni")})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
