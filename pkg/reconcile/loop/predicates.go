package loop

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// OnlyDeletions accepts only that an object is gone, which frees what it had for others that claim the same.
func OnlyDeletions() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// Holds accepts objects with a finalizer in the namespace that is served; empty: in all. The cache of Secrets also has the
// namespaces to which exports write, and there is no cache of the objects there: what holds a Secret is not known.
func Holds(namespace, finalizer string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool {
		return (namespace == "" || object.GetNamespace() == namespace) && controllerutil.ContainsFinalizer(object, finalizer)
	})
}
