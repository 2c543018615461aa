package clusteraccess

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func TestCleanupPolicy(t *testing.T) {
	since := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

	for _, test := range []struct {
		name   string
		policy CleanupPolicy
		after  time.Duration
		want   Action
		says   string
	}{
		{"the cluster answers", CleanupPolicy{}, 0, ActionCleanUp, ""},
		{"the cluster answers, its parent was orphaned and is gone", CleanupPolicy{ParentGone: true}, 0, ActionCleanUp, ""},
		{"the cluster is being destroyed and still answers", CleanupPolicy{ParentDestroying: true}, 0, ActionLetGo, "destroyed with its OmniCluster"},
		{"the cluster is another hub's and answers", CleanupPolicy{OtherHub: "it is hub-2's"}, 0, ActionLetGo, "nothing is removed in the workload cluster: it is hub-2's"},
		{"the kubeconfig is gone", CleanupPolicy{NoKubeconfig: true, Problem: "Secret gone"}, 0, ActionLetGo, "Secret gone"},
		{"the parent is gone and nothing answers", CleanupPolicy{ParentGone: true, Problem: "refused"}, 0, ActionLetGo, "refused"},
		{"the parent is gone and the cluster is being asked", CleanupPolicy{ParentGone: true, Asking: true, Problem: "asked"}, 0, ActionWait, "deletionPolicy to Orphan"},
		{"the parent is gone and the cluster is overloaded", CleanupPolicy{ParentGone: true, Passing: true, Problem: "429"}, 0, ActionWait, "until 2026-01-01T12:02:00Z"},
		{"the parent is gone and the cluster stays overloaded", CleanupPolicy{ParentGone: true, Passing: true, Problem: "429"}, 2 * time.Minute, ActionLetGo, "its OmniCluster is gone"},
		{"it is being asked for ever", CleanupPolicy{Asking: true, Problem: "asked"}, time.Hour, ActionLetGo, "for 1h0m0s"},
		{"nothing is recorded and the cluster answers", CleanupPolicy{Unrecorded: true}, 0, ActionCleanUp, ""},
		{"nothing is recorded and the cluster is being asked", CleanupPolicy{Unrecorded: true, Asking: true, Problem: "asked"}, 0, ActionWait, "asked"},
		{"nothing is recorded and the cluster is overloaded", CleanupPolicy{Unrecorded: true, Passing: true, Problem: "429"}, 0, ActionLetGo, "429"},
		{"nothing is recorded and there is no kubeconfig yet", CleanupPolicy{Unrecorded: true, NoSecret: true, Problem: "exported"}, 0, ActionLetGo, "exported"},
		{"the cluster should be there", CleanupPolicy{Problem: "refused"}, time.Minute, ActionWait, "until 2026-01-01T13:00:00Z"},
		{"the cluster should have been there for long", CleanupPolicy{Problem: "refused"}, time.Hour, ActionLetGo, "for 1h0m0s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.policy.Since, test.policy.First, test.policy.Now = since, since, since.Add(test.after)

			action, why := test.policy.Decide()
			if action != test.want || !strings.Contains(why, test.says) {
				t.Errorf("got %d, %q; want %d, %q", action, why, test.want, test.says)
			}
		})
	}
}

// TestCleanupPolicyAfterTheDeadline: the deadline passed while no controller ran, so the first problem after it does
// not end the clean-up.
func TestCleanupPolicyAfterTheDeadline(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

	for _, test := range []struct {
		name  string
		gone  bool
		tried time.Duration
		want  Action
	}{
		{"first problem", false, 0, ActionWait},
		{"first problem, the parent is gone", true, 0, ActionWait},
		{"a moment", false, 2*time.Minute - time.Second, ActionWait},
		{"long enough", false, 2 * time.Minute, ActionLetGo},
		{"long enough, the parent is gone", true, 2 * time.Minute, ActionLetGo},
	} {
		t.Run(test.name, func(t *testing.T) {
			action, why := CleanupPolicy{
				Problem: "503", Passing: true, ParentGone: test.gone, Since: now.Add(-5 * time.Hour), First: now.Add(-test.tried), Now: now,
			}.Decide()
			if action != test.want {
				t.Errorf("got %d, %q; want %d", action, why, test.want)
			}
		})
	}
}

func TestTroubles(t *testing.T) {
	var known stuckCleanups

	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

	for _, test := range []struct {
		name  string
		over  bool // forget before
		uid   types.UID
		step  step
		after time.Duration
		want  time.Duration
	}{
		{"first", false, "a", stepOpen, 0, 0},
		{"again", false, "a", stepOpen, time.Minute, 0},
		{"another object", false, "b", stepOpen, 2 * time.Minute, 2 * time.Minute},
		{"another step", false, "a", stepCleanUp, 3 * time.Minute, 3 * time.Minute},
		{"it was over", true, "a", stepOpen, 4 * time.Minute, 4 * time.Minute},
		{"nobody had it for long", false, "b", stepOpen, 13 * time.Minute, 13 * time.Minute}, // also drops the clean-up of a
	} {
		if test.over {
			known.over(test.uid, test.step)
		}

		if got := known.first(test.uid, test.step, at.Add(test.after)).Sub(at); got != test.want {
			t.Errorf("%s: first %s after the start, want %s", test.name, got, test.want)
		}
	}

	if len(known.known) != 2 {
		t.Errorf("%d are remembered, want the last of each object: %v", len(known.known), known.known)
	}
}

// TestGiveUpByTheServersClock: a deletion began by the clock of omni-apiserver, and ours may be another, and be set while it waits.
func TestGiveUpByTheServersClock(t *testing.T) {
	deleted := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

	type step struct {
		after time.Duration // the deletion, in truth
		off   time.Duration // how far our clock is ahead
		want  Action
	}

	for name, steps := range map[string][]step{
		"the same":        {{0, 0, ActionWait}, {59 * time.Minute, 0, ActionWait}, {time.Hour, 0, ActionLetGo}},
		"ours is ahead":   {{0, time.Hour, ActionWait}, {3 * time.Minute, time.Hour, ActionWait}, {time.Hour, time.Hour, ActionLetGo}},
		"ours is behind":  {{0, -time.Hour, ActionWait}, {59 * time.Minute, -time.Hour, ActionWait}, {time.Hour, -time.Hour, ActionLetGo}},
		"ours is mended":  {{0, time.Hour, ActionWait}, {3 * time.Minute, 0, ActionWait}, {59 * time.Minute, 0, ActionWait}, {time.Hour, 0, ActionLetGo}},
		"a late start":    {{5 * time.Hour, time.Hour, ActionWait}, {5*time.Hour + time.Minute, 0, ActionWait}, {5*time.Hour + 2*time.Minute, 0, ActionLetGo}},
		"a later mistake": {{0, 0, ActionWait}, {3 * time.Minute, 2 * time.Hour, ActionWait}},
	} {
		var off time.Duration

		access := &Access{ServerAhead: func() time.Duration { return -off }}
		object := &v1alpha1.OmniHelmRelease{ObjectMeta: metav1.ObjectMeta{UID: "u", DeletionTimestamp: &metav1.Time{Time: deleted}}}

		var before time.Duration

		for i, step := range steps {
			// Who does not try for long is forgotten.
			for ; i > 0 && before < step.after; before += 5 * time.Minute {
				access.GiveUp(object, "refused", time.Time{}, deleted.Add(before+off))
			}

			off, before = step.off, step.after

			if got, why := access.GiveUp(object, "refused", time.Time{}, deleted.Add(step.after+off)); got != step.want {
				t.Errorf("%s, step %d: %d, %s", name, i, got, why)
			}
		}
	}
}

// TestPlanCleanupByTheServersClock is the same for a cluster that cannot be opened.
func TestPlanCleanupByTheServersClock(t *testing.T) {
	now := time.Now()
	access, release := visit{token: "A"}.come(t, &atomic.Int32{})
	access.ServerAhead = func() time.Duration { return -time.Hour }
	release.DeletionTimestamp = &metav1.Time{Time: now}

	for _, after := range []time.Duration{0, 3 * time.Minute} {
		cleanup, outcome, err := access.PlanCleanup(t.Context(), RequesterOf(release, nil), now.Add(time.Hour+after))
		if err != nil || cleanup.Action != ActionWait {
			t.Errorf("after %s: %d, %s, %v", after, cleanup.Action, outcome.Message(), err)
		}
	}
}
