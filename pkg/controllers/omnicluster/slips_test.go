package omnicluster

import (
	"context"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// A list that is emptied asks for its machines to go. Before they do, everybody who looks is warned, and afterwards it is said.
func TestEmptiedList(t *testing.T) {
	f := runningList(t)

	f.list("w")
	cluster := f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	says(t, message(cluster, "Synced"), `MachineSetNode "`+f.machines[1]+`"`, `OmniWorkers "w" lists no machine any more`)
	f.quiet()

	for _, object := range []string{"will be destroyed in Omni after the settle time", `OmniCluster "demo": will be destroyed`} {
		if !f.hasEvent("Warning", "WillDestroy", object, `MachineSetNode "`+f.machines[1]+`"`, "lists no machine any more", "spec.suspend") {
			t.Errorf("no warning %q in %q", object, f.events.All())
		}
	}

	f.advance(settleTime)
	cluster = f.until("Ready", metav1.ConditionTrue, "Running")
	says(t, message(cluster, "Ready"), "destroyed since", `MachineSetNode "`+f.machines[1]+`"`, `no machine is listed in OmniWorkers "w"`)
	f.quiet()

	// The status of the run that had them destroyed was not stored.
	cluster.Status.LastDestroyed = nil
	if err := f.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	says(t, message(f.until("Ready", metav1.ConditionTrue, "Running"), "Ready"), "destroyed since", `MachineSetNode "`+f.machines[1]+`"`)

	if f.get().Status.LastDestroyed == nil {
		t.Error("what went is not recorded")
	}

	f.quiet()
	f.restart()
	says(t, message(f.until("Ready", metav1.ConditionTrue, "Running"), "Ready"), "destroyed since", `MachineSetNode "`+f.machines[1]+`"`)

	f.advance(2 * destroyedShown)
	f.run()

	if text := message(f.get(), "Ready"); text != `Omni runs the cluster: 1 of 1 machines healthy; no machine is listed in OmniWorkers "w"` {
		t.Error(text)
	}
}

// The cache lists objects in any order. A status is the same for each.
func TestListsInAnotherOrder(t *testing.T) {
	f := runningList(t)
	f.create(listing("empty-1"), listing("empty-2"))
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()

	for i, name := range []string{"younger", "youngest"} {
		cluster := newCluster()
		cluster.Name, cluster.UID, cluster.Spec.ClusterName = name, types.UID(name), "demo"
		cluster.CreationTimestamp = metav1.Unix(1800000000+int64(i), 0)
		f.create(cluster)
	}

	f.client = interceptor.NewClient(f.client, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := c.List(ctx, list, options...)

			switch listed := list.(type) {
			case *v1alpha1.OmniWorkersList:
				slices.Reverse(listed.Items)
			case *v1alpha1.OmniClusterList:
				slices.Reverse(listed.Items)
			}

			return err
		},
	})
	f.restart()
	f.run()

	says(t, message(f.get(), "Ready"), `no machine is listed in OmniWorkers "empty-1", OmniWorkers "empty-2"`)
	f.quiet()

	youngest, name := &v1alpha1.OmniCluster{}, request(testNamespace, "youngest")
	if _, err := f.loop.Reconcile(t.Context(), name); err != nil {
		t.Fatal(err)
	}

	if err := f.client.Get(t.Context(), name.NamespacedName, youngest); err != nil {
		t.Fatal(err)
	}

	says(t, message(youngest, "Stalled"), `OmniCluster "demo", which is older`)
}
