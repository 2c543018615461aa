package omnicluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// settlingWithoutSlots is a bench with a set whose destruction settles, and whose last runs found all slots taken.
// meanwhile happens between two of them.
func settlingWithoutSlots(t *testing.T, meanwhile func(*bench)) *bench {
	t.Helper()

	b := running(t)
	b.delete(newWorkers("w", machineClass, 2))
	b.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	b.advance(settleTime - time.Second)

	release := b.takeSlots()
	writes := b.writes
	b.run()
	meanwhile(b)

	if result := b.run(); result.RequeueAfter > slotPause || b.writes != writes {
		t.Errorf("looks again after %s, %d writes", result.RequeueAfter, b.writes-writes)
	}

	release()
	b.advance(time.Second)

	return b
}

// While many clusters of a connection settle at once, most runs find no slot.
func TestRunWithoutASlotKeepsTheSettleTime(t *testing.T) {
	b := settlingWithoutSlots(t, func(*bench) {})

	b.run()
	b.wantTornDown("MachineSets demo-w")
	b.until("Ready", metav1.ConditionTrue, "Running")
	b.quiet()
}

// Runs without a slot do not see whether a document comes back and goes again.
func TestSettleTimeStartsAgainAfterChangesWithoutASlot(t *testing.T) {
	for name, meanwhile := range map[string]func(*bench){
		"the cluster is edited, and back": func(b *bench) {
			for _, labels := range []map[string]string{{"a": "b"}, nil} {
				b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Labels = labels })
			}
		},
		"a document goes, and another takes its place": func(b *bench) {
			next := newControlPlane("cp", b.machines[0])
			next.UID = "uid-cp-2"

			b.delete(newControlPlane("cp", b.machines[0]))
			b.create(next)
		},
		"a document comes, and goes": func(b *bench) {
			b.create(newWorkers("w", machineClass, 2))
			b.delete(newWorkers("w", machineClass, 2))
			b.reconciler.deletions.note(newWorkers("w", machineClass, 2), b.clock()) // as the watch does
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := settlingWithoutSlots(t, meanwhile)

			b.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
			b.advance(settleTime - 2*time.Second)
			b.run()
			b.wantTornDown()
			b.advance(2 * time.Second)
			b.run()
			b.wantTornDown("MachineSets demo-w")
		})
	}
}

// A run whose status is not written must not tell of it either: the next one would tell it again.
func TestRunWithoutASlotTellsNothing(t *testing.T) {
	b := running(t)
	b.reconciler.options.Rollouts = true

	policy := &v1alpha1.OmniRolloutPolicy{
		ObjectMeta: meta("fleet", "uid-fleet"),
		Spec:       v1alpha1.OmniRolloutPolicySpec{ClusterSelector: &metav1.LabelSelector{}, Stages: []v1alpha1.RolloutStage{{Name: "all"}}},
	}
	b.create(policy)

	cluster := b.get()
	cluster.Status.Rollout = &v1alpha1.OmniClusterRollout{
		Policy: "fleet", State: v1alpha1.RolloutAdmitted, Hash: "hash", Governed: true, AdmittedSince: &metav1.Time{Time: b.clock().Add(-1000 * time.Hour)},
	}

	for i := range cluster.Status.Conditions {
		if c := &cluster.Status.Conditions[i]; c.Type == v1alpha1.ConditionReady {
			c.Status = metav1.ConditionFalse
		}
	}

	if err := b.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	release := b.takeSlots()
	defer release()

	for range 3 {
		b.run()
	}

	if b.hasEvent("RolloutFailed") || b.get().Status.Rollout.State != v1alpha1.RolloutAdmitted {
		t.Errorf("%q, %+v", b.seen, b.get().Status.Rollout)
	}
}
