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

// prunes remembers when an object of the group was deleted last, by namespace, for a settle time at least. The zero
// value is ready to use.
type prunes struct {
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
func (p *prunes) in(namespace string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.last[namespace]
}

// note notes a deletion, and drops those that hold nothing back any more: their namespaces may be gone.
func (p *prunes) note(object client.Object, now time.Time, settleTime time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.last == nil {
		p.last = map[string]time.Time{}
	}

	maps.DeleteFunc(p.last, func(_ string, last time.Time) bool { return now.Sub(last) >= settleTime })

	p.last[object.GetNamespace()] = now
}

// handler notes deletions, and enqueues nothing. An object with a finalizer counts when its deletion begins.
func (p *prunes) handler(now func() time.Time, settleTime time.Duration) handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if e.ObjectOld.GetDeletionTimestamp().IsZero() && !e.ObjectNew.GetDeletionTimestamp().IsZero() {
				p.note(e.ObjectNew, now(), settleTime)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if e.Object.GetDeletionTimestamp().IsZero() {
				p.note(e.Object, now(), settleTime)
			}
		},
	}
}
