package omnicluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/trigger"
)

// wellSince is since when the status says that the cluster runs well; zero if it does not.
func (f *fixture) wellSince() time.Time {
	f.t.Helper()

	if since := f.turn().WellSince; since != nil {
		return since.Time
	}

	return time.Time{}
}

// untilWell reconciles until the status says that the cluster runs well, or that it does not.
func (f *fixture) untilWell(want bool) time.Time {
	f.t.Helper()
	f.eventually("the cluster to run well, or not to", func() string {
		f.run()

		if f.wellSince().IsZero() == want {
			return f.wellSince().String()
		}

		return ""
	})

	return f.wellSince()
}

// TestOmniWasAway has the watches break, and Omni go away and come back. The cluster ran well all the time, as far as anybody
// knows.
func TestOmniWasAway(t *testing.T) {
	f := governed(t)
	since := f.untilWell(true)

	f.advance(time.Hour)
	f.omni.ResetStreams()
	f.until(v1alpha1.ConditionReady, metav1.ConditionTrue, "Running")
	f.loseOmni(false)
	f.advance(time.Minute) // longer than a restart of Omni
	f.until(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonMirrorNotSynced)

	if err := f.omni.ComeBack(); err != nil {
		t.Fatal(err)
	}

	f.until(v1alpha1.ConditionReady, metav1.ConditionTrue, "Running")

	if got := f.wellSince(); !got.Equal(since) {
		t.Errorf("well since %s, before %s", got, since)
	}

	f.quiet()
}

// TestWellSinceOfAClusterThatWaits has a cluster wait for an approval: it is not Ready, whether it runs well or not.
func TestWellSinceOfAClusterThatWaits(t *testing.T) {
	f := governed(t)
	before := f.untilWell(true)

	f.edit(func(cluster *v1alpha1.OmniCluster) {
		cluster.Spec.ChangePolicy = v1alpha1.ChangePolicyConfirmDestructive
	})
	f.delete(newWorkers("w", machineClass, 2))
	f.until(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval)

	if got := f.wellSince(); !got.Equal(before) {
		t.Errorf("well since %s, before it waited %s", got, before)
	}

	f.advance(time.Hour)
	f.omni.KillMachine(f.machines[0])
	f.untilWell(false)
	f.until(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval)
	f.advance(time.Hour)

	if err := f.omni.ReviveMachine(f.machines[0]); err != nil {
		t.Fatal(err)
	}

	now := f.clock().Truncate(time.Second)
	if got := f.untilWell(true); got.Before(now) {
		t.Errorf("well since %s, and it is %s", got, now)
	}

	f.quiet()
}

// TestWellSinceOfAnUpgrade upgrades a cluster. The time counts from when it runs the new version.
func TestWellSinceOfAnUpgrade(t *testing.T) {
	f := governed(t)
	f.untilWell(true)
	f.upgrade("v1.36.1")

	admitted := f.clock().Truncate(time.Second)

	if turn := f.untilTurnEnds(nil); turn.WellSince == nil || turn.WellSince.Time.Before(admitted) {
		t.Errorf("%+v", turn)
	}

	if got := f.get().Status.Omni.Upgrades.Kubernetes; got == nil || got.Version != "v1.36.1" {
		t.Errorf("%+v", got)
	}

	// Another write does not begin it anew.
	since := f.wellSince()

	f.advance(time.Hour)
	f.edit(func(cluster *v1alpha1.OmniCluster) { cluster.Spec.Labels = map[string]string{"a": "b"} })
	f.until(v1alpha1.ConditionSynced, metav1.ConditionTrue, "")

	if got := f.wellSince(); !got.Equal(since) || f.view().Labels["a"] != "b" {
		t.Errorf("well since %s, before %s", got, since)
	}
}

// TestWellSinceThatIsNotCurrent has a status that no policy selected yet, or that is from before an upgrade: a snapshot was
// restored, or the process died.
func TestWellSinceThatIsNotCurrent(t *testing.T) {
	for name, test := range map[string]struct {
		status func(*v1alpha1.OmniClusterStatus)
		isNow  bool
	}{
		"no policy selected it yet, and it is Ready": {status: func(s *v1alpha1.OmniClusterStatus) {
			s.Rollout.WellSince, s.Omni.Upgrades.Kubernetes.Version = nil, ""
		}},
		"no policy selected it yet, and it waits": {isNow: true, status: func(s *v1alpha1.OmniClusterStatus) {
			s.Rollout.WellSince = nil
			s.Conditions = []metav1.Condition{{
				Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonAwaitingApproval,
				LastTransitionTime: metav1.Unix(1700000000, 0),
			}}
		}},
		"it is from before an upgrade": {isNow: true, status: func(s *v1alpha1.OmniClusterStatus) {
			s.Rollout.WellSince = &metav1.Time{Time: time.Unix(1700000000, 0)}
			s.Omni.KubernetesVersion = "v1.35.0"
		}},
		"all of it is lost": {isNow: true, status: func(s *v1alpha1.OmniClusterStatus) { *s = v1alpha1.OmniClusterStatus{} }},
	} {
		t.Run(name, func(t *testing.T) {
			f := governed(t)
			f.untilWell(true)

			cluster := f.get()
			test.status(&cluster.Status)

			if err := f.client.Status().Update(t.Context(), cluster); err != nil {
				t.Fatal(err)
			}

			rollouts := f.reconciler.options
			f.restart()
			f.reconciler.options = rollouts
			f.advance(time.Hour)

			now := f.clock().Truncate(time.Second)
			if got := f.untilWell(true); got.Before(now) == test.isNow || got.Before(now.Add(-24*time.Hour)) {
				t.Errorf("well since %s, and it is %s", got, now)
			}

			f.quiet()
		})
	}
}

// TestSeen has a new process look at a cluster that runs well by its status: it confirms that only when it has seen it in Omni.
func TestSeen(t *testing.T) {
	f := governed(t)
	since := f.untilWell(true)

	rollouts := f.reconciler.options
	f.loseOmni(false)
	f.restart()
	f.reconciler.options = rollouts
	f.reconciler.options.Well = hubs.NewWell(trigger.Pacing{})
	f.advance(time.Hour)
	f.until(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonMirrorNotSynced)

	if cluster := f.get(); !f.wellSince().Equal(since) || f.reconciler.options.Well.Confirms(cluster) {
		t.Errorf("well since %s, and confirmed by a process that has seen nothing", f.wellSince())
	}

	if err := f.omni.ComeBack(); err != nil {
		t.Fatal(err)
	}

	f.until(v1alpha1.ConditionReady, metav1.ConditionTrue, "Running")

	if cluster := f.get(); !f.wellSince().Equal(since) || !f.reconciler.options.Well.Confirms(cluster) {
		t.Errorf("well since %s, and not confirmed", f.wellSince())
	}

	// The status from before is not confirmed any more.
	before := f.get()

	f.omni.KillMachine(f.machines[0])
	f.untilWell(false)

	if f.reconciler.options.Well.Confirms(before) {
		t.Error("a status from before the cluster broke is confirmed")
	}

	f.quiet()
}
