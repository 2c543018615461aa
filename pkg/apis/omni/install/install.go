// Package install adds every version of the omni.texashpc.com API and autoscaling's Scale (for the scale subresource) to
// a scheme. The API server and the tests use it.
package install

import (
	"fmt"
	"reflect"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Install adds everything that the API server serves to the scheme. It panics on a programming
// error, as the schemes of Kubernetes do; it is called before start.
func Install(scheme *runtime.Scheme) {
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	installInternal(scheme)
	utilruntime.Must(scheme.SetVersionPriority(v1alpha1.SchemeGroupVersion))
	utilruntime.Must(installScale(scheme))
}

// installInternal registers the Go types of v1alpha1 as the internal version, too, on which k8s.io/apiserver works
// whatever version a client speaks: there is nothing to convert.
func installInternal(scheme *runtime.Scheme) {
	internal := schema.GroupVersion{Group: v1alpha1.GroupName, Version: runtime.APIVersionInternal}
	own := reflect.TypeFor[v1alpha1.OmniCluster]().PkgPath()

	for kind, found := range scheme.KnownTypes(v1alpha1.SchemeGroupVersion) {
		if found.PkgPath() == own {
			scheme.AddKnownTypeWithName(internal.WithKind(kind), reflect.New(found).Interface().(runtime.Object)) //nolint:forcetypeassert // it was registered
		}
	}
}

// installScale registers one Go type as both versions of Scale: there is nothing to convert, and
// the internal type of autoscaling lives in k8s.io/kubernetes, which cannot be imported.
func installScale(scheme *runtime.Scheme) error {
	if err := autoscalingv1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("add autoscaling/v1: %w", err)
	}

	internal := schema.GroupVersion{Group: autoscalingv1.GroupName, Version: runtime.APIVersionInternal}
	scheme.AddKnownTypes(internal, &autoscalingv1.Scale{})

	return nil
}
