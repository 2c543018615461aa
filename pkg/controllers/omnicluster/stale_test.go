package omnicluster

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// A watch that has not told of a worker set's return does not destroy the set.
func TestStaleCacheDestroysNothing(t *testing.T) {
	b := running(t)
	writes := b.remoteWrites()

	// The cache has lost the worker sets; the API has them.
	b.reconciler.client = interceptor.NewClient(b.client, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, lost := list.(*v1alpha1.OmniWorkersList); lost {
				return nil
			}

			return c.List(ctx, list, options...)
		},
	})
	b.loop = loop.New(b.reconciler.kind(), loop.Settings{Client: b.client, Events: b.events})

	b.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	b.advance(settleTime)
	b.until("Synced", metav1.ConditionFalse, "Conflict")
	b.until("Synced", metav1.ConditionFalse, "WaitingToSettle")

	if got := b.remoteWrites() - writes; got != 0 {
		t.Errorf("%d writes to Omni", got)
	}
}

// After a restore of the API's storage generations repeat: what the cache still has as deleted in one of them may be
// another state of the object there.
func TestRestoredObjectIsNotDestroyed(t *testing.T) {
	b := running(t)
	b.delete(newCluster())

	writes := b.remoteWrites()
	b.reconciler.live = interceptor.NewClient(b.client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			err := c.Get(ctx, key, object, options...)
			object.SetDeletionTimestamp(nil)

			return err
		},
	})

	b.until("Ready", metav1.ConditionFalse, "Conflict")

	if got := b.remoteWrites() - writes; got != 0 {
		t.Errorf("%d writes to Omni", got)
	}
}

// The same with a document: it is smaller in the cache only.
func TestRestoredDocumentIsNotScaledDown(t *testing.T) {
	b := running(t)
	b.resize(3)
	b.until("Synced", metav1.ConditionTrue, "")

	writes := b.remoteWrites()
	b.resize(1)

	b.reconciler.live = interceptor.NewClient(b.client, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := c.List(ctx, list, options...)

			if restored, isWorkers := list.(*v1alpha1.OmniWorkersList); isWorkers {
				for i := range restored.Items {
					restored.Items[i].Spec.MachineClass.Size = new(intstr.FromInt32(3))
				}
			}

			return err
		},
	})

	b.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	b.advance(settleTime)
	b.until("Synced", metav1.ConditionFalse, "Conflict")

	if got := b.remoteWrites() - writes; got != 0 {
		t.Errorf("%d writes to Omni", got)
	}
}
