package omnirolloutpolicy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// TestRollout takes one version through both stages: who waited longest is first, one at a time, and prod begins when
// canary has run it for its soak time.
func TestRollout(t *testing.T) {
	f := newFixture(t, newPolicy("production"),
		newCluster("c1", "canary", waits(time.Hour)), newCluster("c2", "canary", waits(2*time.Hour)), newCluster("p1", "prod", waits(9*time.Hour)))

	policy, _ := f.run("production")
	wantTickets(t, policy, "c2 (canary)")

	ticket := v1alpha1.RolloutTicket{Cluster: "c2", UID: "uid-c2", Stage: "canary", Hash: "hash-c2", Since: metav1.NewTime(noon)}
	if got := policy.Status.Admitted[0]; got.UID != ticket.UID || got.Hash != ticket.Hash || !got.Since.Equal(&ticket.Since) {
		t.Errorf("the ticket is %+v", got)
	}

	if got := condition(policy, "Ready"); got != "True InForce: clusters: 3, of which 3 wait, 1 may begin or are at work, 0 failed" {
		t.Error(got)
	}

	// It is at work, and so nobody else begins.
	f.put(newCluster("c2", "canary", works))
	policy, _ = f.run("production")
	wantTickets(t, policy, "c2 (canary)")

	f.put(newCluster("c2", "canary", isDone(0)))
	policy, _ = f.run("production")
	wantTickets(t, policy, "c1 (canary)")

	f.put(newCluster("c1", "canary", isDone(0)))
	policy, after := f.run("production")
	wantTickets(t, policy, "")

	// The soak time is an hour by default.
	if after != 10*time.Minute {
		t.Errorf("the next run is in %s", after)
	}

	f.now = noon.Add(time.Hour - 5*time.Minute)
	if policy, after = f.run("production"); after != 5*time.Minute || tickets(policy) != "" {
		t.Errorf("the next run is in %s; tickets %s", after, tickets(policy))
	}

	f.now = noon.Add(time.Hour)
	policy, _ = f.run("production")
	wantTickets(t, policy, "p1 (prod)")

	if told := f.events.New(); !slices.ContainsFunc(told, func(text string) bool {
		return strings.Contains(text, `StageQualified stage "canary" has proved Kubernetes `+v2)
	}) {
		t.Errorf("no event of the proof: %q", told)
	}
}

// TestSlots: maxConcurrent is per stage.
func TestSlots(t *testing.T) {
	two := intstr.FromInt32(2)
	f := newFixture(t, newPolicy("production", func(p *v1alpha1.OmniRolloutPolicy) { p.Spec.Stages[0].MaxConcurrent = &two }),
		newCluster("c1", "canary", waits(time.Hour)), newCluster("c2", "canary", waits(time.Hour)), newCluster("c3", "canary", waits(time.Hour)))

	policy, _ := f.run("production")
	wantTickets(t, policy, "c1 (canary), c2 (canary)")

	if diff := cmp.Diff(v1alpha1.RolloutStageStatus{Name: "canary", Clusters: 3, Held: 3, Admitted: 2, Open: true, QuietSince: &metav1.Time{}}, policy.Status.Stages[0],
		cmp.Comparer(func(a, b *metav1.Time) bool { return (a == nil) == (b == nil) }), cmp.FilterPath(func(p cmp.Path) bool {
			return p.String() == "Soaking" || p.String() == "Qualified"
		}, cmp.Ignore())); diff != "" {
		t.Errorf("the stage (-want +got):\n%s", diff)
	}
}

// TestClosed: nothing begins outside the windows, in a freeze and on hold; the next run is when one of them ends.
func TestClosed(t *testing.T) {
	saturday := time.Date(2026, 11, 28, 2, 0, 0, 0, time.UTC)
	windows := func(p *v1alpha1.OmniRolloutPolicy) {
		p.Spec.Stages[0].Windows = []v1alpha1.MaintenanceWindow{{Days: []v1alpha1.Weekday{"Sat"}, Start: "02:00", Duration: "4h", TimeZone: "UTC"}}
	}
	freeze := func(p *v1alpha1.OmniRolloutPolicy) {
		p.Spec.Freezes = []v1alpha1.RolloutFreeze{{Name: "f", From: metav1.NewTime(noon.Add(-time.Hour)), Until: metav1.NewTime(saturday)}}
	}

	for name, test := range map[string]struct {
		change func(*v1alpha1.OmniRolloutPolicy)
		opens  time.Time
	}{
		"a window": {windows, saturday},
		"a freeze": {freeze, saturday},
		"on hold":  {change: func(p *v1alpha1.OmniRolloutPolicy) { p.Spec.Hold = true }},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newPolicy("production", test.change), newCluster("c1", "canary", waits(time.Hour)))

			policy, after := f.run("production")
			wantTickets(t, policy, "")

			if policy.Status.Held != 1 || after != interval {
				t.Errorf("held %d, the next run is in %s", policy.Status.Held, after)
			}

			if test.opens.IsZero() {
				return
			}

			if next := policy.Status.Stages[0].NextChange; next == nil || !next.Time.Equal(test.opens) || policy.Status.Stages[0].Open {
				t.Errorf("the stage is open: %t, next %v", policy.Status.Stages[0].Open, next)
			}

			f.now = test.opens.Add(-3 * time.Second)
			if policy, after = f.run("production"); tickets(policy) != "" || after != 3*time.Second {
				t.Errorf("the next run is in %s; tickets %s", after, tickets(policy))
			}

			f.now = test.opens
			policy, _ = f.run("production")
			wantTickets(t, policy, "c1 (canary)")
		})
	}
}

// TestSecondRunWritesNothing: the status is written once, and a run that finds the same writes nothing, also later.
func TestSecondRunWritesNothing(t *testing.T) {
	f := newFixture(t, newPolicy("production"), newCluster("c1", "canary", works), newCluster("c2", "canary", waits(time.Hour)), newCluster("c3", "canary"))

	f.run("production")

	if f.writes != 1 {
		t.Errorf("%d writes, want 1", f.writes)
	}

	for range 3 {
		f.now = f.now.Add(time.Minute)
		f.run("production")
	}

	if f.writes != 1 {
		t.Errorf("%d writes after more runs, want 1", f.writes)
	}
}

// TestMembersChange: a cluster that is deleted, or made again, loses its ticket; one that has left keeps it while it is
// at work.
func TestMembersChange(t *testing.T) {
	selects := func(p *v1alpha1.OmniRolloutPolicy) {
		p.Spec.ClusterSelector = &v1alpha1.ClusterSelector{MatchExpressions: []v1alpha1.ClusterSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpExists}}}
	}
	left := func(o *v1alpha1.OmniCluster) { o.Labels = nil }
	idle := func(o *v1alpha1.OmniCluster) { o.Status.Rollout = nil }

	for name, test := range map[string]struct {
		c1   *v1alpha1.OmniCluster
		want string
	}{
		"at work":              {newCluster("c1", "canary", works), "c1 (canary)"},
		"deleted":              {nil, "c2 (canary)"},
		"left, and at work":    {newCluster("c1", "", works, left), "c1 (canary)"},
		"left, still held":     {newCluster("c1", "", waits(2*time.Hour), left), "c1 (canary)"},
		"left, nothing to do":  {newCluster("c1", "", idle, left), "c2 (canary)"},
		"now of another stage": {newCluster("c1", "prod", works), "c1 (canary), c2 (canary)"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newPolicy("production", selects), newCluster("c1", "canary", waits(2*time.Hour)), newCluster("c2", "canary", waits(time.Hour)))

			policy, _ := f.run("production")
			wantTickets(t, policy, "c1 (canary)")

			if test.c1 != nil {
				f.put(test.c1)
			} else if err := f.client.Delete(t.Context(), newCluster("c1", "")); err != nil {
				t.Fatal(err)
			}

			policy, _ = f.run("production")
			wantTickets(t, policy, test.want)
		})
	}
}

// TestTwoPolicies: a cluster that two policies select begins by neither, and counts as held in neither. A policy that
// cannot be read selects every cluster, as the controller of OmniClusters sees it.
func TestTwoPolicies(t *testing.T) {
	prod := &v1alpha1.ClusterSelector{MatchLabels: map[string]string{"tier": "prod"}}
	unknown := v1alpha1.MaintenanceWindow{Days: []v1alpha1.Weekday{"Sat"}, Start: "02:00", Duration: "4h", TimeZone: "Mars/Olympus"}

	for name, test := range map[string]struct {
		other *v1alpha1.OmniRolloutPolicy
		want  string
	}{
		"the other selects others":       {newPolicy("other", func(p *v1alpha1.OmniRolloutPolicy) { p.Spec.ClusterSelector = prod }), "c1 (canary)"},
		"the other selects it too":       {newPolicy("other"), ""},
		"the other selects nothing":      {newPolicy("other", func(p *v1alpha1.OmniRolloutPolicy) { p.Spec.ClusterSelector = nil }), "c1 (canary)"},
		"the other is of another place":  {newPolicy("other", func(p *v1alpha1.OmniRolloutPolicy) { p.Namespace = "homelab" }), "c1 (canary)"},
		"the other's selector is broken": {newPolicy("other", func(p *v1alpha1.OmniRolloutPolicy) { p.Spec.ClusterSelector.MatchLabels = map[string]string{"a b": ""} }), ""},
		"the other's zone is unknown": {newPolicy("other", func(p *v1alpha1.OmniRolloutPolicy) {
			p.Spec.ClusterSelector = prod
			p.Spec.Stages[1].Windows = []v1alpha1.MaintenanceWindow{unknown}
		}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newPolicy("production"), test.other, newCluster("c1", "canary", waits(time.Hour)))

			policy, _ := f.run("production")
			wantTickets(t, policy, test.want)

			held := int32(0)
			if test.want != "" {
				held = 1
			}

			if policy.Status.Held != held {
				t.Errorf("%d are held, want %d", policy.Status.Held, held)
			}

			if got := condition(policy, "Ready"); strings.HasSuffix(got, "; nothing begins in those that another OmniRolloutPolicy selects as well: c1") != (test.want == "") {
				t.Error(got)
			}
		})
	}
}

// TestOnHold: the reason of Ready says that nothing begins, and the message how it goes on, and what soaks.
func TestOnHold(t *testing.T) {
	f := newFixture(t, newPolicy("production", func(p *v1alpha1.OmniRolloutPolicy) { p.Spec.Hold = true }),
		newCluster("c1", "canary", isDone(20*time.Minute)), newCluster("p1", "prod", waits(time.Hour)))

	policy, _ := f.run("production")
	wantTickets(t, policy, "")

	if diff := cmp.Diff("True PolicyOnHold: spec.hold is set: nothing begins until it is released (kubectl omni hold production -n fleet --release); "+
		`clusters: 2, of which 1 wait, 0 may begin or are at work, 0 failed; stage "canary" soaks Kubernetes v1.36.1 until Wed 2026-11-25 12:40 UTC`,
		condition(policy, "Ready")); diff != "" {
		t.Error(diff)
	}
}

// TestUnusable: a policy that cannot be used is Stalled, and its status stays as it was.
func TestUnusable(t *testing.T) {
	f := newFixture(t, newPolicy("production"), newCluster("c1", "canary", waits(time.Hour)))

	policy, _ := f.run("production")
	wantTickets(t, policy, "c1 (canary)")

	f.skew = -31 * time.Second
	f.put(newCluster("c1", "canary", isDone(0)))

	policy, next := f.run("production")
	wantTickets(t, policy, "c1 (canary)")

	if got := condition(policy, "Stalled"); !strings.HasPrefix(got, "True ClockSkew: the clocks of kube-apiserver and of omni-controller differ by about 30s: ") {
		t.Error(got)
	}

	// No watch says that the clocks agree again.
	if next > time.Minute {
		t.Errorf("the clocks are compared again after %s", next)
	}

	// Answers have whole seconds, so the difference is another one each time. It is told once.
	writes := f.writes
	f.skew = -31*time.Second - 900*time.Millisecond
	f.run("production")

	if f.writes != writes {
		t.Errorf("%d writes while the clocks differ", f.writes-writes)
	}

	f.skew = 30 * time.Second
	policy, _ = f.run("production")
	wantTickets(t, policy, "")

	if got := condition(policy, "Stalled"); got != "" {
		t.Error(got)
	}

	policy.Spec.Stages[1].Windows = []v1alpha1.MaintenanceWindow{{Days: []v1alpha1.Weekday{"Sat"}, Start: "02:00", Duration: "4h", TimeZone: "Mars/Olympus"}}
	f.put(policy)
	policy, _ = f.run("production")

	if got := condition(policy, "Stalled"); !strings.HasPrefix(got, `True InvalidTimeZone: spec.stages[1].windows: there is no time zone "Mars/Olympus"`) {
		t.Error(got)
	}
}

// fails is the cluster c1 with a change that failed.
func fails(o *v1alpha1.OmniCluster) {
	waits(time.Hour)(o)
	o.Status.Rollout.State = v1alpha1.RolloutFailed
	o.Status.Rollout.Failure = &v1alpha1.RolloutFailure{Hash: "hash-c1", Time: metav1.NewTime(noon), Message: "no image"}
	o.Status.Conditions[0].Status = metav1.ConditionFalse
}

// TestStopped: a failed cluster stops the others; the condition and the events say so, and that it is over.
func TestStopped(t *testing.T) {
	f := newFixture(t, newPolicy("production"), newCluster("c1", "canary", fails), newCluster("c2", "canary", waits(time.Hour)))

	policy, _ := f.run("production")
	wantTickets(t, policy, "")

	if got := condition(policy, v1alpha1.ConditionRolloutStopped); got != "True TooManyFailed: 1 failed (maxFailed is 0): c1 (no image); fix them in Git" {
		t.Error(got)
	}

	f.put(newCluster("c1", "canary", isDone(0)))
	policy, _ = f.run("production")
	wantTickets(t, policy, "c2 (canary)")

	if got := condition(policy, v1alpha1.ConditionRolloutStopped); got != "" {
		t.Error(got)
	}

	told := strings.Join(f.events.New(), "\n")
	for _, text := range []string{"Warning RolloutStopped nothing else begins: 1 failed (maxFailed is 0): c1 (no image)", "Normal RolloutResumed changes begin again"} {
		if !strings.Contains(told, text) {
			t.Errorf("no event %q in:\n%s", text, told)
		}
	}
}

// TestToldWhenStored: a status that the API server does not take is no news.
func TestToldWhenStored(t *testing.T) {
	f := newFixture(t, newPolicy("production"), newCluster("c1", "canary", fails), newCluster("c2", "canary", waits(time.Hour)))
	f.refusals = 2

	for range 2 {
		if _, err := f.loop.Reconcile(t.Context(), reconcile.Request{NamespacedName: key("production")}); err == nil {
			t.Fatal("the refusal is not returned")
		}

		if told := f.events.New(); len(told) != 0 {
			t.Errorf("told %q", told)
		}

		f.restart()
		f.note(newCluster("c1", "canary", fails), newCluster("c2", "canary", waits(time.Hour)))
	}

	f.run("production")
	f.run("production")

	if told := strings.Join(f.events.New(), "\n"); strings.Count(told, "Warning RolloutStopped nothing else begins: 1 failed") != 1 {
		t.Errorf("told %q", told)
	}
}

// TestStoppedByALowerLimit: an edit of maxFailed stops a rollout, or lets it go on, as what happens to clusters does.
func TestStoppedByALowerLimit(t *testing.T) {
	f := newFixture(t, newPolicy("production", func(p *v1alpha1.OmniRolloutPolicy) { p.Spec.MaxFailed = 1 }), newCluster("c1", "canary", fails))

	for _, step := range []struct {
		most int32
		want string
	}{
		{1, ""}, {0, "Warning RolloutStopped nothing else begins: 1 failed (maxFailed is 0): c1 (no image)"}, {0, ""}, {1, "Normal RolloutResumed changes begin again"}, {1, ""},
	} {
		policy, _ := f.run("production")
		policy.Spec.MaxFailed = step.most
		policy.Generation++

		if err := f.client.Update(t.Context(), policy); err != nil {
			t.Fatal(err)
		}

		f.events.New()
		f.run("production")

		if told := strings.Join(f.events.New(), "\n"); step.want == "" && strings.Contains(told, "Rollout") || !strings.Contains(told, step.want) {
			t.Errorf("maxFailed %d: got %q, want %q", step.most, told, step.want)
		}
	}
}

// TestPromoted: somebody lets a stage begin without the earlier one, and there is one event of it.
func TestPromoted(t *testing.T) {
	f := newFixture(t, newPolicy("production", func(p *v1alpha1.OmniRolloutPolicy) {
		p.Annotations = map[string]string{v1alpha1.AnnotationPromotePrefix + "prod": "2026-11-25T13:00:00Z"}
	}), newCluster("c1", "canary"), newCluster("p1", "prod", waits(time.Hour)))

	for range 2 {
		policy, _ := f.run("production")
		wantTickets(t, policy, "p1 (prod)")
	}

	if told := strings.Join(f.events.New(), "\n"); strings.Count(told, `Promoted stage "prod" may begin without the earlier ones until Wed 2026-11-25 13:00 UTC`) != 1 {
		t.Error(told)
	}
}

// TestMeasured: the metrics follow the status, and go with the policy.
func TestMeasured(t *testing.T) {
	f := newFixture(t, newPolicy("production", func(p *v1alpha1.OmniRolloutPolicy) {
		p.Spec.Stages[1].Windows = []v1alpha1.MaintenanceWindow{{Days: []v1alpha1.Weekday{"Sat"}, Start: "02:00", Duration: "4h", TimeZone: "UTC"}}
	}), newCluster("c1", "canary", works), newCluster("p1", "prod", waits(2*time.Hour)), newCluster("p2", "prod", waits(time.Hour)))
	f.run("production")

	want := fmt.Sprintf(`
# HELP omni_rollout_next_open_timestamp_seconds When changes of a stage may begin again by its windows and freezes, in seconds since 1970. Absent while they may.
# TYPE omni_rollout_next_open_timestamp_seconds gauge
omni_rollout_next_open_timestamp_seconds{namespace="fleet",policy="production",stage="prod"} %d
# HELP omni_rollout_oldest_held_timestamp_seconds Since when the changes of a stage have waited that wait longest, in seconds since 1970. Absent if none wait.
# TYPE omni_rollout_oldest_held_timestamp_seconds gauge
omni_rollout_oldest_held_timestamp_seconds{namespace="fleet",policy="production",stage="prod"} %d
`, time.Date(2026, 11, 28, 2, 0, 0, 0, time.UTC).Unix(), noon.Add(-2*time.Hour).Unix())

	if err := testutil.CollectAndCompare(f.rollouts, strings.NewReader(want), "omni_rollout_next_open_timestamp_seconds", "omni_rollout_oldest_held_timestamp_seconds"); err != nil {
		t.Error(err)
	}

	if got := testutil.CollectAndCount(f.rollouts); got != 9 {
		t.Errorf("%d series", got)
	}

	if err := f.client.Delete(t.Context(), newPolicy("production")); err != nil {
		t.Fatal(err)
	}

	if _, err := f.loop.Reconcile(t.Context(), reconcile.Request{NamespacedName: key("production")}); err != nil {
		t.Fatal(err)
	}

	if got := testutil.CollectAndCount(f.rollouts); got != 0 {
		t.Errorf("%d series of a policy that is gone", got)
	}
}

// TestAfterAnAbsence: the controller was away when canary broke, and when its soak time ended. Nothing is proved by the status
// from before, until the new process has seen in Omni what it says.
func TestAfterAnAbsence(t *testing.T) {
	canary := newCluster("c1", "canary", isDone(2*time.Hour))

	for name, test := range map[string]struct {
		found   *v1alpha1.OmniCluster // by the new process
		tickets string
		says    string
	}{
		"it still runs well": {found: canary, tickets: "p1 (prod)"},
		"it has not been seen": {
			says: `; stage "canary" has soaked Kubernetes v1.36.1, and omni-controller has yet to look at its clusters in Omni`,
		},
		"it does not run well, and the status does not say so yet": {
			found: newCluster("c1", "canary", isDone(2*time.Hour), func(o *v1alpha1.OmniCluster) { o.Status.Rollout.WellSince = nil }),
			says:  `; stage "canary" has soaked Kubernetes v1.36.1, and omni-controller has yet to look at its clusters in Omni`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newPolicy("production"), canary.DeepCopy(), newCluster("p1", "prod", waits(time.Hour)))
			f.now = noon.Add(-2 * time.Hour)
			before, _ := f.run("production")
			wantTickets(t, before, "")

			f.now = noon
			f.restart()

			// The status says what it said before: nothing is written, and no time passes that would change it.
			policy, after := f.run("production")
			if diff := cmp.Diff(before.Status.Stages, policy.Status.Stages, cmpopts.IgnoreFields(v1alpha1.RolloutStageStatus{}, "QuietSince", "LastQuietSince")); diff != "" || after != interval {
				t.Errorf("the next run is in %s, the stages (-before +after):\n%s", after, diff)
			}

			if test.found != nil {
				f.note(test.found)
			}

			policy, _ = f.run("production")
			wantTickets(t, policy, test.tickets)

			if got := condition(policy, "Ready"); test.says != "" && !strings.HasSuffix(got, test.says) {
				t.Error(got)
			}

			f.writes = 0
			f.run("production")

			if f.writes != 0 {
				t.Errorf("%d writes", f.writes)
			}
		})
	}
}
