package omnicluster

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// deletions remembers when an object of the group was deleted last, by namespace, for a settle time at least. The zero
// value is ready to use.
type deletions struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// watchedForDeletions are the kinds of the documents that a prune takes one after the other.
func watchedForDeletions() []client.Object {
	return []client.Object{
		&v1alpha1.OmniCluster{}, &v1alpha1.OmniControlPlane{}, &v1alpha1.OmniWorkers{}, &v1alpha1.OmniMachine{},
		&v1alpha1.OmniKubeconfigExport{}, &v1alpha1.OmniSecretSync{}, &v1alpha1.OmniHelmRelease{},
	}
}

// in returns when an object was deleted last in a namespace; zero if that is not known any more.
func (d *deletions) in(namespace string) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()

	return d.last[namespace]
}

// note notes a deletion, and drops those that hold nothing back any more: their namespaces may be gone.
func (d *deletions) note(object client.Object, now time.Time, settleTime time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()

	if d.last == nil {
		d.last = map[string]time.Time{}
	}

	maps.DeleteFunc(d.last, func(_ string, last time.Time) bool { return now.Sub(last) >= settleTime })

	d.last[object.GetNamespace()] = now
}

// handler notes deletions, and enqueues nothing. An object with a finalizer counts when its deletion begins.
func (d *deletions) handler(now func() time.Time, settleTime time.Duration) handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if e.ObjectOld.GetDeletionTimestamp().IsZero() && !e.ObjectNew.GetDeletionTimestamp().IsZero() {
				d.note(e.ObjectNew, now(), settleTime)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if e.Object.GetDeletionTimestamp().IsZero() {
				d.note(e.Object, now(), settleTime)
			}
		},
	}
}
