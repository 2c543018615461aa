package omnicluster

import (
	"math/rand/v2"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// slotPause is how long a run without a slot waits when nobody wakes it. The
// next free slot does, so this is for lost wake-ups only.
const slotPause = 5 * time.Second

// takeSlot makes sure that the runs of one connection do not take all workers.
// Without a slot nothing is wrong with the cluster, so its status stays; only a
// cluster that is not Ready is told what it waits for, when that may take long.
// A deletion is never told: it would take it for a connection that is broken.
func takeSlot(s *scope, connected loop.Outcome) loop.Outcome {
	if s.lease.Enter(s.name) {
		return connected
	}

	pause := slotPause - rand.N(slotPause/2)
	ready := apimeta.IsStatusConditionTrue(s.cluster.Status.Conditions, v1alpha1.ConditionReady)

	if ready || !s.cluster.DeletionTimestamp.IsZero() || !s.lease.Slow() {
		return loop.Postpone(pause, v1alpha1.ReasonProgressing, "other clusters of the connection come first")
	}

	return loop.Wait(pause, v1alpha1.ReasonConnectionNotReady,
		"OmniConnection %q: Omni answers slowly or not at all, and other clusters wait for it; this one comes next by itself", s.connection.Name)
}
