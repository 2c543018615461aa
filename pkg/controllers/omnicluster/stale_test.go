package omnicluster

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// A watch that has not told of a worker set's return does not destroy the set.
func TestStaleCacheDestroysNothing(t *testing.T) {
	f := running(t)
	writes := f.remoteWrites()

	// The cache has lost the worker sets; the API has them.
	f.reconciler.client = interceptor.NewClient(f.client, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, lost := list.(*v1alpha1.OmniWorkersList); lost {
				return nil
			}

			return c.List(ctx, list, options...)
		},
	})
	f.loop = loop.New(f.reconciler.kind(), loop.Settings{Client: f.client, Events: f.events})

	f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	f.advance(settleTime)
	f.until("Synced", metav1.ConditionFalse, "Conflict")
	f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")

	if got := f.remoteWrites() - writes; got != 0 {
		t.Errorf("%d writes to Omni", got)
	}
}

// After a restore of the API's storage generations repeat: what the cache still has as deleted in one of them may be
// another state of the object there.
func TestRestoredObjectIsNotDestroyed(t *testing.T) {
	f := running(t)
	f.delete(newCluster())

	writes := f.remoteWrites()
	f.reconciler.live = interceptor.NewClient(f.client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			err := c.Get(ctx, key, object, options...)
			object.SetDeletionTimestamp(nil)

			return err
		},
	})

	f.until("Ready", metav1.ConditionFalse, "Conflict")

	if got := f.remoteWrites() - writes; got != 0 {
		t.Errorf("%d writes to Omni", got)
	}
}

// The same with a document: it is smaller in the cache only.
func TestRestoredDocumentIsNotScaledDown(t *testing.T) {
	f := running(t)
	f.resize(3)
	f.until("Synced", metav1.ConditionTrue, "")

	writes := f.remoteWrites()
	f.resize(1)

	f.reconciler.live = interceptor.NewClient(f.client, interceptor.Funcs{
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

	f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	f.advance(settleTime)
	f.until("Synced", metav1.ConditionFalse, "Conflict")

	if got := f.remoteWrites() - writes; got != 0 {
		t.Errorf("%d writes to Omni", got)
	}
}

// A worker set whose document is another cluster's by now, which a watch has not told yet, is not destroyed.
func TestSetWhoseDocumentMovedUnseen(t *testing.T) {
	f := running(t)
	moved := f.withoutWorkers()

	cached := f.reconciler.client
	f.reconciler.client = interceptor.NewClient(f.client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, unseen := object.(*v1alpha1.OmniWorkers); unseen {
				return apierrors.NewNotFound(v1alpha1.Resource("omniworkers"), key.Name)
			}

			return c.Get(ctx, key, object, options...)
		},
	})

	f.create(moved)
	f.advance(settleTime)
	f.until("Synced", metav1.ConditionFalse, "Conflict")

	f.reconciler.client = cached
	f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	f.wantTornDown()
}
