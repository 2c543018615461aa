package omnicluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/skew"
	"omni.texashpc.com/omni-cluster-operator/test/looptest"
)

// lastLook is what the API has when a turn is about to begin.
type lastLook struct {
	cluster *v1alpha1.OmniCluster
	policy  *v1alpha1.OmniRolloutPolicy
	second  *v1alpha1.OmniRolloutPolicy // nil if there is none
}

// wednesday is inside of the window of newLastLook.
var wednesday = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// upgradeFacts has one change to make in a cluster, a new version of Kubernetes, under the conditions of a policy.
func upgradeFacts(cluster *v1alpha1.OmniCluster, gate consent.Gate) consent.Facts {
	return consent.Facts{
		Cluster: cluster, Now: wednesday, Gate: gate,
		Plan: &plan.Plan{Changes: []plan.Change{{
			Action: plan.ActionUpdate, Type: plan.TypeCluster, ID: testCluster, Kind: v1alpha1.ChangeKubernetesVersion, Digest: "d",
		}}},
	}
}

// newLastLook has a cluster with a ticket for one change, and the decision to make it.
func newLastLook() (lastLook, consent.Decision) {
	cluster := newCluster()
	cluster.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRunning}}
	cluster.Status.Endpoint = "https://omni.example.com"

	facts := upgradeFacts(cluster, consent.Gate{
		Policy: "fleet", Stage: "all", Governed: true,
		Gates: func(v1alpha1.ChangeKind) bool { return true },
		Judge: func(v1alpha1.OmniClusterRollout) consent.Wait { return consent.Wait{} },
		Turn:  consent.Turn{Healthy: true, Deadline: 2 * time.Hour, ReadyTime: time.Minute},
	})
	cluster.Status.Rollout = consent.Decide(facts).Rollout()

	ticket := v1alpha1.RolloutTicket{
		Cluster: cluster.Name, UID: string(cluster.UID), Stage: "all", Hash: cluster.Status.Rollout.Hash, Since: metav1.Time{Time: wednesday},
	}
	facts.Gate.Ticket = &ticket

	policy := &v1alpha1.OmniRolloutPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "fleet", Namespace: cluster.Namespace, Generation: 3},
		Spec: v1alpha1.OmniRolloutPolicySpec{
			ClusterSelector: &v1alpha1.ClusterSelector{},
			Stages: []v1alpha1.RolloutStage{{
				Name: "all", Windows: []v1alpha1.MaintenanceWindow{{Days: []v1alpha1.Weekday{"Wed"}, Start: "11:00", Duration: "2h", TimeZone: "UTC"}},
			}},
		},
	}
	policy.Status.ObservedGeneration = 3
	policy.Status.Admitted = []v1alpha1.RolloutTicket{ticket}
	facts.Cluster = cluster.DeepCopy() // tests change the other one

	return lastLook{cluster: cluster, policy: policy}, consent.Decide(facts)
}

// objects are what the API has.
func (l *lastLook) objects() []client.Object {
	objects := []client.Object{l.cluster, l.policy}
	if l.second != nil {
		objects = append(objects, l.second)
	}

	return objects
}

// override has the API what somebody writes who overrides changes.
func (l *lastLook) override(hash string) {
	l.cluster.Annotations = map[string]string{v1alpha1.AnnotationRolloutOverride: hash + " the outage of tonight"}
	l.cluster.Status.Rollout.Override = &v1alpha1.RolloutOverride{Hash: hash, Reason: "the outage of tonight", User: "alice"}
}

// TestIsTurn changes what the API has between the decision and the write.
func TestIsTurn(t *testing.T) {
	spec := func(change func(*v1alpha1.OmniRolloutPolicySpec)) func(*lastLook) {
		return func(l *lastLook) { change(&l.policy.Spec) }
	}

	for name, test := range map[string]struct {
		change func(*lastLook)
		at     time.Duration // after noon
		skew   time.Duration // between kube-apiserver and us
		want   bool
	}{
		"nothing":                     {want: true},
		"clocks that differ a little": {skew: -30 * time.Second, want: true},
		"our clock is behind":         {skew: 10 * time.Hour},
		"our clock is ahead":          {skew: -31 * time.Second},
		"an override, and no clock to trust": {skew: time.Hour, want: true, change: func(l *lastLook) {
			l.override(l.cluster.Status.Rollout.Hash)
		}},
		"the last second of a window": {at: time.Hour - time.Second, want: true},
		"the window has ended":        {at: time.Hour},
		"a freeze": {change: spec(func(s *v1alpha1.OmniRolloutPolicySpec) {
			s.Freezes = []v1alpha1.RolloutFreeze{{
				Name: "now", From: metav1.Time{Time: wednesday.Add(-time.Hour)}, Until: metav1.Time{Time: wednesday.Add(time.Hour)},
			}}
		})},
		"the policy is on hold":            {change: spec(func(s *v1alpha1.OmniRolloutPolicySpec) { s.Hold = true })},
		"the policy has not been observed": {change: func(l *lastLook) { l.policy.Generation++ }},
		"the policy is gone":               {change: func(l *lastLook) { l.policy.Name = "another" }},
		"it selects the cluster no more": {change: spec(func(s *v1alpha1.OmniRolloutPolicySpec) {
			s.ClusterSelector = &v1alpha1.ClusterSelector{MatchLabels: map[string]string{"a": "b"}}
		})},
		"the cluster is in another stage": {change: spec(func(s *v1alpha1.OmniRolloutPolicySpec) { s.Stages[0].Name = "renamed" })},
		"a second policy selects it": {change: func(l *lastLook) {
			l.second = l.policy.DeepCopy()
			l.second.Name = "a-second"
		}},
		"the cluster has another label now": {change: func(l *lastLook) {
			l.policy.Spec.ClusterSelector = &v1alpha1.ClusterSelector{MatchExpressions: []v1alpha1.ClusterSelectorRequirement{{Key: "free", Operator: metav1.LabelSelectorOpDoesNotExist}}}
			l.cluster.Labels = map[string]string{"free": "yes"}
		}},
		"somebody failed":                 {change: func(l *lastLook) { l.policy.Status.FailedCount = 1 }},
		"the ticket is gone":              {change: func(l *lastLook) { l.policy.Status.Admitted = nil }},
		"the ticket is for other changes": {change: func(l *lastLook) { l.policy.Status.Admitted[0].Hash = "other" }},
		"the ticket is another object's":  {change: func(l *lastLook) { l.policy.Status.Admitted[0].UID = "other" }},
		"the object has changed":          {change: func(l *lastLook) { l.cluster.Generation++ }},
		"the object is another one":       {change: func(l *lastLook) { l.cluster.UID = "other" }},
		"the object is gone":              {change: func(l *lastLook) { l.cluster.Name = "another" }},
		"an override, and no ticket": {want: true, change: func(l *lastLook) {
			l.policy.Status.Admitted, l.policy.Spec.Hold = nil, true
			l.override(l.cluster.Status.Rollout.Hash)
		}},
		"an override that has been used up": {change: func(l *lastLook) {
			l.policy.Status.Admitted = nil
			l.override(l.cluster.Status.Rollout.Hash)
			l.cluster.Status.Rollout.Override.UsedTime = &metav1.Time{Time: wednesday}
		}},
		"an override of other changes": {change: func(l *lastLook) {
			l.policy.Status.Admitted = nil
			l.override("other")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			now, decision := newLastLook()
			if !decision.Begins() {
				t.Fatal("nothing is about to begin")
			}

			s := &scope{cluster: now.cluster.DeepCopy(), name: testCluster}

			if test.change != nil {
				test.change(&now)
			}

			r := &reconciler{
				live: looptest.NewAPI(now.objects()...).Build(),
				options: Options{
					Now:  func() time.Time { return wednesday.Add(test.at) },
					Skew: func() skew.Difference { return skew.Difference{Server: "kube-apiserver", Ahead: test.skew} },
				},
			}

			if got, err := r.mayStillBegin(t.Context(), s, decision); err != nil || got != test.want {
				t.Errorf("%t %v, want %t", got, err, test.want)
			}
		})
	}
}

// TestABegunTurnGoesOn has half of a turn's changes made, and no ticket for the rest any more.
func TestABegunTurnGoesOn(t *testing.T) {
	var off time.Duration // between kube-apiserver's clock and ours

	for name, change := range map[string]func(*lastLook){
		"the ticket is gone":     func(l *lastLook) { l.policy.Status.Admitted = nil },
		"the policy is gone":     func(l *lastLook) { l.policy.Name = "another" },
		"the policy is on hold":  func(l *lastLook) { l.policy.Spec.Hold = true },
		"the window has ended":   func(l *lastLook) { l.policy.Spec.Stages[0].Windows[0].Start = "14:00" },
		"it has another version": func(l *lastLook) { l.policy.Generation++ },
		"no clock to trust":      func(*lastLook) { off = time.Hour },
	} {
		t.Run(name, func(t *testing.T) {
			off = 0
			now, decision := newLastLook()
			rollout := decision.Rollout()
			rollout.Changes = append([]string{"made"}, rollout.Changes...)
			now.cluster.Status.Rollout, now.cluster.Status.LastSyncTime = rollout, &metav1.Time{Time: wednesday}
			change(&now)

			r := &reconciler{
				live:    looptest.NewAPI(now.objects()...).Build(),
				options: Options{Now: func() time.Time { return wednesday }, Skew: func() skew.Difference { return skew.Difference{Ahead: off} }},
			}

			decision = consent.Decide(upgradeFacts(now.cluster, consent.Gate{
				Policy: "fleet", Stage: "all", Governed: true,
				Gates: func(v1alpha1.ChangeKind) bool { return true },
				Judge: func(v1alpha1.OmniClusterRollout) consent.Wait {
					return consent.Wait{Reason: v1alpha1.ReasonPolicyOnHold}
				},
				Turn: consent.Turn{Deadline: 2 * time.Hour, ReadyTime: time.Minute},
			}))
			if !decision.Begins() || !decision.HasBegun() {
				t.Fatal("the turn does not go on")
			}

			if got, err := r.mayStillBegin(t.Context(), &scope{cluster: now.cluster, name: testCluster}, decision); err != nil || !got {
				t.Errorf("%t %v", got, err)
			}
		})
	}
}

// TestTurnDue looks at a cluster under a policy whose deadline is two hours.
func TestTurnDue(t *testing.T) {
	at := func(after time.Duration) *metav1.Time { return &metav1.Time{Time: wednesday.Add(after)} }
	well := []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRunning, LastTransitionTime: *at(-10 * time.Second)}}

	planned := []metav1.Condition{{Type: v1alpha1.ConditionPlanned, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonUpToDate}}

	for name, test := range map[string]struct {
		status     *v1alpha1.OmniClusterRollout
		conditions []metav1.Condition
		suspend    bool
		want       time.Duration
	}{
		"no policy":                         {},
		"held, and nobody knows until when": {status: &v1alpha1.OmniClusterRollout{State: v1alpha1.RolloutHeld}},
		"held until the window opens":       {status: &v1alpha1.OmniClusterRollout{State: v1alpha1.RolloutHeld, NotBefore: at(time.Hour)}, want: time.Hour},
		"held until in a moment":            {status: &v1alpha1.OmniClusterRollout{State: v1alpha1.RolloutHeld, NotBefore: at(time.Millisecond)}, want: time.Second},
		"held until somebody promotes, in a stage that closes in an hour": {
			status: &v1alpha1.OmniClusterRollout{State: v1alpha1.RolloutHeld, Reason: v1alpha1.ReasonAwaitingPromotion, Policy: "fleet"}, want: time.Hour,
		},
		"held, and the policy is gone":                 {status: &v1alpha1.OmniClusterRollout{State: v1alpha1.RolloutHeld, Reason: v1alpha1.ReasonFrozen, Policy: "gone"}},
		"the window has opened, and there was no plan": {status: &v1alpha1.OmniClusterRollout{State: v1alpha1.RolloutHeld, NotBefore: at(-time.Second)}},
		"the window opened during the run": {
			status: &v1alpha1.OmniClusterRollout{State: v1alpha1.RolloutHeld, NotBefore: at(-time.Second)}, conditions: planned, want: time.Second,
		},
		"Ready for long enough during the run": {
			status: &v1alpha1.OmniClusterRollout{State: v1alpha1.RolloutAdmitted, AdmittedSince: at(-time.Hour), Policy: "fleet"},
			conditions: append(planned, metav1.Condition{
				Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRunning, LastTransitionTime: *at(-2 * time.Minute),
			}),
			want: time.Second,
		},
		"suspended, and Ready for long enough": {
			status: &v1alpha1.OmniClusterRollout{State: v1alpha1.RolloutAdmitted, AdmittedSince: at(-time.Hour), Policy: "fleet"},
			conditions: append(planned, metav1.Condition{
				Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRunning, LastTransitionTime: *at(-2 * time.Minute),
			}),
			suspend: true,
		},
		"at work": {
			status: &v1alpha1.OmniClusterRollout{State: v1alpha1.RolloutAdmitted, AdmittedSince: at(-time.Hour), Policy: "fleet"}, want: time.Hour,
		},
		"at work for too long": {status: &v1alpha1.OmniClusterRollout{State: v1alpha1.RolloutAdmitted, AdmittedSince: at(-3 * time.Hour), Policy: "fleet"}},
		"at work, and the policy is gone": {
			status: &v1alpha1.OmniClusterRollout{State: v1alpha1.RolloutAdmitted, AdmittedSince: at(-time.Hour), Policy: "gone"},
		},
		"Ready for ten seconds": {
			status: &v1alpha1.OmniClusterRollout{State: v1alpha1.RolloutAdmitted, AdmittedSince: at(-time.Hour), Policy: "fleet"}, conditions: well, want: 50 * time.Second,
		},
		"failed": {status: &v1alpha1.OmniClusterRollout{State: v1alpha1.RolloutFailed, AdmittedSince: at(-time.Hour), Policy: "fleet"}},
	} {
		t.Run(name, func(t *testing.T) {
			now, _ := newLastLook()
			now.cluster.Status.Rollout, now.cluster.Status.Conditions = test.status, test.conditions
			now.cluster.Spec.Suspend = test.suspend

			r := &reconciler{
				client:  looptest.NewAPI(now.policy).Build(),
				options: Options{Now: func() time.Time { return wednesday }, RolloutReadyTime: time.Minute},
				started: wednesday.Add(-24 * time.Hour),
			}

			if got := r.turnDue(now.cluster); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func newOptionsAt(now time.Time) Options {
	return Options{Rollouts: true, Now: func() time.Time { return now }}
}

// TestANewPolicyHolds has a policy that the API has, and the cache not yet, when a change is about to begin that needed
// no turn.
func TestANewPolicyHolds(t *testing.T) {
	for name, test := range map[string]struct {
		cached, stored bool
		change         func(*lastLook)
		labels         map[string]string // that the cache does not have yet
		ours           bool              // Omni has the cluster, with our mark
		want           bool
	}{
		"no policy":             {want: true},
		"a new policy":          {stored: true},
		"a policy that is gone": {cached: true},
		"a policy that does not select": {stored: true, want: true, change: func(l *lastLook) {
			l.policy.Spec.ClusterSelector = &v1alpha1.ClusterSelector{MatchLabels: map[string]string{"a": "b"}}
		}},
		"a new label": {cached: true, stored: true, labels: map[string]string{"a": "b"}, change: func(l *lastLook) {
			l.policy.Spec.ClusterSelector = &v1alpha1.ClusterSelector{MatchLabels: map[string]string{"a": "b"}}
		}},
		"another new label": {cached: true, stored: true, want: true, labels: map[string]string{"a": "c"}, change: func(l *lastLook) {
			l.policy.Spec.ClusterSelector = &v1alpha1.ClusterSelector{MatchLabels: map[string]string{"a": "b"}}
		}},
		"a cluster whose status was lost": {stored: true, ours: true, change: func(l *lastLook) { l.cluster.Status = v1alpha1.OmniClusterStatus{} }},
		"a cluster that was never Ready":  {stored: true, want: true, change: func(l *lastLook) { l.cluster.Status = v1alpha1.OmniClusterStatus{} }},
	} {
		t.Run(name, func(t *testing.T) {
			now, _ := newLastLook()
			now.cluster.Status.Rollout = nil

			if test.change != nil {
				test.change(&now)
			}

			with := func(has bool, labels map[string]string) client.Client {
				cluster := now.cluster.DeepCopy()
				cluster.Labels = labels

				if !has {
					return looptest.NewAPI(cluster).Build()
				}

				return looptest.NewAPI(cluster, now.policy.DeepCopy()).Build()
			}

			r := &reconciler{client: with(test.cached, nil), live: with(test.stored, test.labels), options: newOptionsAt(wednesday)}
			s := &scope{cluster: now.cluster, name: testCluster, seen: &seen{}}
			if test.ours {
				s.seen.live = omni.Live{Exists: true, Marks: omni.Marks{UID: string(now.cluster.UID)}}
			}

			var err error
			if s.gate, err = r.findGate(t.Context(), s); err != nil {
				t.Fatal(err)
			}

			decision := consent.Decide(upgradeFacts(now.cluster, consent.Gate{}))

			if got, err := r.mayStillBegin(t.Context(), s, decision); err != nil || got != test.want {
				t.Errorf("%t %v, want %t", got, err, test.want)
			}
		})
	}
}
