// Package install adds the omni.texashpc.com API and autoscaling's Scale (for the scale subresource) to a
// scheme, for the API server, and makes the codec of its storage.
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
	utilruntime.Must(scheme.SetVersionPriority(v1alpha1.SchemeGroupVersion))
	addInternal(scheme)
	utilruntime.Must(installScale(scheme))
}

// addInternal registers the types of v1alpha1 also as the internal version, which the library's handlers work on.
// With one Go type for both versions there is nothing to convert.
func addInternal(scheme *runtime.Scheme) {
	ours := reflect.TypeFor[v1alpha1.OmniCluster]().PkgPath()
	internal := schema.GroupVersion{Group: v1alpha1.GroupName, Version: runtime.APIVersionInternal}

	for kind, of := range scheme.KnownTypes(v1alpha1.SchemeGroupVersion) {
		// The options of requests are registered in every version, but have no internal version here.
		if of.PkgPath() != ours {
			continue
		}

		obj, err := scheme.New(v1alpha1.SchemeGroupVersion.WithKind(kind))
		utilruntime.Must(err)
		scheme.AddKnownTypeWithName(internal.WithKind(kind), obj)
	}
}

// installScale registers Scale in the same way: the internal type of autoscaling is in k8s.io/kubernetes, which
// cannot be imported.
func installScale(scheme *runtime.Scheme) error {
	if err := autoscalingv1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("add autoscaling/v1: %w", err)
	}

	internal := schema.GroupVersion{Group: autoscalingv1.GroupName, Version: runtime.APIVersionInternal}
	scheme.AddKnownTypes(internal, &autoscalingv1.Scale{})

	return nil
}
