package omnicluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// turnByAClockAhead is a turn in which all times were written while the clock was ten hours ahead. It is right again.
func turnByAClockAhead(t *testing.T) *fixture {
	t.Helper()

	f := governed(t)
	f.upgrade("v1.36.1")
	f.eventually("the turn", func() string { f.run(); return noState(f.turn(), v1alpha1.RolloutAdmitted) })
	f.eventually("the write", func() string {
		f.run()

		if asked := f.asked(); asked != "1.36.1" {
			return asked
		}

		return ""
	})
	f.until(v1alpha1.ConditionSynced, metav1.ConditionTrue, "")

	cluster, ahead := f.get(), &metav1.Time{Time: f.clock().Add(10 * time.Hour).UTC().Truncate(time.Second)}
	turn := cluster.Status.Rollout
	turn.WellSince, turn.AdmittedSince, turn.HeldSince, turn.ChangedSince, cluster.Status.LastSyncTime = ahead, ahead, ahead, ahead, ahead

	known := f.reconciler.processStates.of(cluster)
	known.tried.since, known.tried.at, known.unwell = ahead.Time, ahead.Time, ahead.Time

	if err := f.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	return f
}

// TestTurnByAClockAhead: the turn ends when the cluster has been well for the ready time, or when the deadline is over, as
// the right clock has it.
func TestTurnByAClockAhead(t *testing.T) {
	t.Run("well", func(t *testing.T) {
		f := turnByAClockAhead(t)
		begun := f.clock()

		turn := f.untilTurnEnds(nil)
		if took := turn.Last.Time.Sub(begun); turn.Last.Result != v1alpha1.RolloutDone || took < readyTime-time.Second || took > time.Hour {
			t.Errorf("%+v after %s", turn.Last, took)
		}

		f.quiet()
	})

	t.Run("not well", func(t *testing.T) {
		f := turnByAClockAhead(t)
		f.omni.KillMachine(f.machines[0])
		f.untilWell(false)
		f.advance(time.Hour)
		f.run()

		if turn := f.turn(); turn.State != v1alpha1.RolloutAdmitted {
			t.Fatalf("before the deadline: %+v", turn)
		}

		f.advance(time.Hour)
		f.run()

		if turn := f.turn(); turn.Last == nil || turn.Last.Result != v1alpha1.RolloutUnsuccessful {
			t.Errorf("after the deadline: %+v", turn)
		}
	})
}

// TestHeldByAClockAhead: changes are known since now, not since later.
func TestHeldByAClockAhead(t *testing.T) {
	f := governed(t)
	f.edit(func(cluster *v1alpha1.OmniCluster) { cluster.Spec.Kubernetes.Version = "v1.36.1" })
	cluster := f.until(v1alpha1.ConditionHeld, metav1.ConditionTrue, "")

	ahead := &metav1.Time{Time: f.clock().Add(10 * time.Hour).UTC().Truncate(time.Second)}
	cluster.Status.Rollout.HeldSince, cluster.Status.Rollout.ChangedSince, cluster.Status.Rollout.WellSince = ahead, ahead, ahead

	if err := f.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	f.run()

	now := &metav1.Time{Time: f.clock().UTC().Truncate(time.Second)}
	if turn := f.turn(); !turn.HeldSince.Equal(now) || !turn.ChangedSince.Equal(now) || !turn.WellSince.Equal(now) {
		t.Errorf("at %s: %+v", now, turn)
	}

	f.advance(time.Hour)
	f.run()

	if turn := f.turn(); !turn.HeldSince.Equal(now) || !turn.WellSince.Equal(now) {
		t.Errorf("an hour later: %+v", turn)
	}

	f.quiet()
}
