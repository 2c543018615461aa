package index

import (
	"context"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// lookupTimeout bounds a list of the cache, which waits until the cache is filled: the context of an event has no deadline of
// its own.
const lookupTimeout = 10 * time.Second

// Each calls do for each object of the list's kind that the options select, as the cache has them; do may only read it, as
// it is the cache's own. It calls nothing if the cache cannot be read: the objects are reconciled at their interval.
func Each[O client.Object](ctx context.Context, cache client.Reader, list client.ObjectList, do func(O), options ...client.ListOption) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()

	if err := cache.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return
	}

	_ = apimeta.EachListItem(list, func(item runtime.Object) error { // it returns what the function does
		if object, ok := item.(O); ok {
			do(object)
		}

		return nil
	})
}

// Requests returns a request for each object of the list's kind that the options select, as Each finds them.
func Requests(ctx context.Context, cache client.Reader, list client.ObjectList, options ...client.ListOption) []reconcile.Request {
	var requests []reconcile.Request

	Each(ctx, cache, list, func(object client.Object) {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
	}, options...)

	return requests
}

// OfConnection returns a function for the events of OmniConnections: it returns what ofCluster does for the clusters of a
// connection, as the cache has them.
func OfConnection(cache client.Reader, ofCluster handler.MapFunc) handler.MapFunc {
	return func(ctx context.Context, connection client.Object) []reconcile.Request {
		var requests []reconcile.Request

		Each(ctx, cache, &v1alpha1.OmniClusterList{}, func(cluster *v1alpha1.OmniCluster) {
			requests = append(requests, ofCluster(ctx, cluster)...)
		}, client.InNamespace(connection.GetNamespace()), client.MatchingFields{ByConnection: connection.GetName()})

		return requests
	}
}
