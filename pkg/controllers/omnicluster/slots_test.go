package omnicluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
)

// settlingWithoutSlots is a fixture with a set whose destruction settles, and whose last runs found all slots taken.
// meanwhile happens between two of them.
func settlingWithoutSlots(t *testing.T, meanwhile func(*fixture)) *fixture {
	t.Helper()

	f := running(t)
	f.delete(newWorkers("w", machineClass, 2))
	f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	f.advance(settleTime - time.Second)

	release := f.takeSlots()
	writes := f.writes
	f.run()
	meanwhile(f)

	if result := f.run(); result.RequeueAfter > limiter.WakePause || f.writes != writes {
		t.Errorf("looks again after %s, %d writes", result.RequeueAfter, f.writes-writes)
	}

	release()
	f.advance(time.Second)

	return f
}

// While many clusters of a connection settle at once, most runs find no slot.
func TestRunWithoutASlotKeepsTheSettleTime(t *testing.T) {
	f := settlingWithoutSlots(t, func(*fixture) {})

	f.run()
	f.wantTornDown("MachineSets demo-w")
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()
}

// Runs without a slot do not see whether a document comes back and goes again.
func TestSettleTimeStartsAgainAfterChangesWithoutASlot(t *testing.T) {
	for name, meanwhile := range map[string]func(*fixture){
		"the cluster is edited, and back": func(f *fixture) {
			for _, labels := range []map[string]string{{"a": "b"}, nil} {
				f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Labels = labels })
			}
		},
		"a document goes, and another takes its place": func(f *fixture) {
			next := newControlPlane("cp", f.machines[0])
			next.UID = "uid-cp-2"

			f.delete(newControlPlane("cp", f.machines[0]))
			f.create(next)
		},
		"a document comes, and goes": func(f *fixture) {
			f.create(newWorkers("w", machineClass, 2))
			f.delete(newWorkers("w", machineClass, 2))
			f.reconciler.prunes.note(newWorkers("w", machineClass, 2), f.clock(), settleTime) // as the watch does
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := settlingWithoutSlots(t, meanwhile)

			f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
			f.advance(settleTime - 2*time.Second)
			f.run()
			f.wantTornDown()
			f.advance(2 * time.Second)
			f.run()
			f.wantTornDown("MachineSets demo-w")
		})
	}
}

// A run whose status is not written must not tell of it either: the next one would tell it again.
func TestRunWithoutASlotTellsNothing(t *testing.T) {
	f := running(t)
	f.reconciler.options.Rollouts = true

	policy := &v1alpha1.OmniRolloutPolicy{
		ObjectMeta: meta("fleet", "uid-fleet"),
		Spec:       v1alpha1.OmniRolloutPolicySpec{ClusterSelector: &v1alpha1.ClusterSelector{}, Stages: []v1alpha1.RolloutStage{{Name: "all"}}},
	}
	f.create(policy)

	cluster := f.get()
	cluster.Status.Rollout = &v1alpha1.OmniClusterRollout{
		Policy: "fleet", State: v1alpha1.RolloutAdmitted, Hash: "hash", Governed: true, AdmittedSince: &metav1.Time{Time: f.clock().Add(-1000 * time.Hour)},
	}

	for i := range cluster.Status.Conditions {
		if c := &cluster.Status.Conditions[i]; c.Type == v1alpha1.ConditionReady {
			c.Status = metav1.ConditionFalse
		}
	}

	if err := f.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	release := f.takeSlots()
	defer release()

	for range 3 {
		f.run()
	}

	if f.hasEvent("RolloutFailed") || f.get().Status.Rollout.State != v1alpha1.RolloutAdmitted {
		t.Errorf("%q, %+v", f.events.All(), f.get().Status.Rollout)
	}
}
