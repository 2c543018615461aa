package omnirolloutpolicy

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// TestNamespaceWakesPolicies: a cluster or policy that is made, changed or deleted wakes every policy of its namespace, a
// second later, so that many changes of a fleet make one run.
func TestNamespaceWakesPolicies(t *testing.T) {
	f := newFixture(t, newPolicy("production"), newPolicy("nights"), newPolicy("other", func(p *v1alpha1.OmniRolloutPolicy) { p.Namespace = "homelab" }))
	handler := (&reconciler{client: f.client}).ofNamespace()
	cluster := newCluster("c1", "canary")

	for name, wake := range map[string]func(context.Context, queue){
		"made": func(ctx context.Context, q queue) { handler.Create(ctx, event.CreateEvent{Object: cluster}, q) },
		"changed": func(ctx context.Context, q queue) {
			handler.Update(ctx, event.UpdateEvent{ObjectOld: cluster, ObjectNew: cluster}, q)
		},
		"deleted": func(ctx context.Context, q queue) { handler.Delete(ctx, event.DeleteEvent{Object: cluster}, q) },
		"another policy": func(ctx context.Context, q queue) {
			handler.Delete(ctx, event.DeleteEvent{Object: newPolicy("gone")}, q)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
				defer q.ShutDown()

				wake(t.Context(), q)
				wake(t.Context(), q)
				time.Sleep(gather - time.Millisecond)
				synctest.Wait()

				if q.Len() != 0 {
					t.Error("a policy does not wait for further changes")
				}

				time.Sleep(2 * time.Millisecond)
				synctest.Wait()

				var woken []string

				for q.Len() > 0 {
					request, _ := q.Get()
					woken = append(woken, request.String())
				}

				slices.Sort(woken)

				if got := strings.Join(woken, " "); got != "fleet/nights fleet/production" {
					t.Errorf("woken: %s", got)
				}
			})
		})
	}
}
