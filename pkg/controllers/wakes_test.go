package controllers

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/trigger"
)

// TestInventedClustersAreBounded checks that an Omni that changes clusters without end, each of another name, has few of
// them wait, and that all OmniClusters of its connection are looked at instead.
func TestInventedClustersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clusterHealth := trigger.New[string](wakePacing())
		clusterChanged := newClusterChanged(clusterHealth)

		for number := range 50 * maxRemotes {
			clusterChanged.Fire(omnicluster.Remote{Connection: "hostile", Cluster: fmt.Sprint(number)})
		}

		clusterChanged.Fire(omnicluster.Remote{Connection: "other", Cluster: "demo"})

		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer queue.ShutDown()

		connections, remotes := map[string]int{}, map[string]int{}

		for _, source := range []interface {
			Start(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error
		}{
			clusterHealth.Source(func(_ context.Context, uid string) []reconcile.Request {
				connections[uid]++

				return nil
			}),
			clusterChanged.Source(func(_ context.Context, remote omnicluster.Remote) []reconcile.Request {
				remotes[remote.Connection]++

				return nil
			}),
		} {
			if err := source.Start(t.Context(), queue); err != nil {
				t.Fatal(err)
			}
		}

		synctest.Wait()

		if remotes["hostile"] != maxRemotes || remotes["other"] != 1 {
			t.Errorf("looked up %v", remotes)
		}

		if len(connections) != 1 || connections["hostile"] != 1 {
			t.Errorf("all clusters were looked at of %v", connections)
		}
	})
}
