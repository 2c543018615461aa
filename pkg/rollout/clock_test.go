package rollout_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

func TestNotAfter(t *testing.T) {
	for name, test := range map[string]struct{ time, want *metav1.Time }{
		"none":     {},
		"earlier":  {seconds(noon.Add(-time.Hour)), seconds(noon.Add(-time.Hour))},
		"now":      {seconds(noon), seconds(noon)},
		"in a day": {seconds(noon.Add(24 * time.Hour)), seconds(noon)},
	} {
		if got := rollout.NotAfter(test.time, noon.Add(300*time.Millisecond)); !got.Equal(test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// TestProvedByAClockAhead has a version proved while the clock was ahead, and the clock be right again. What differs by no
// more than the clocks of two processes stays.
func TestProvedByAClockAhead(t *testing.T) {
	for ahead, want := range map[time.Duration]bool{-time.Hour: true, time.Minute: true, 61 * time.Second: false, 24 * time.Hour: false} {
		object := policyOf()
		object.Status.Stages = []v1alpha1.RolloutStageStatus{{
			Name: "canary", Clusters: 1, Qualified: []v1alpha1.QualifiedVersion{{Kubernetes: v2, Since: *seconds(noon.Add(ahead))}},
		}}

		// The policy has not been evaluated yet.
		waiting := memberOf("p", 1, wants(v2))
		if verdict := read(t, object).Judge(waiting, noon); (verdict.Reason == "") != want {
			t.Errorf("proved %s ahead: %+v", ahead, verdict)
		}

		object, _ = after(t, object, list(memberOf("c", 0, runs(v2, 10*time.Minute)), waiting), noon)
		if got := slices.Contains(kubernetes(object.Status.Stages[0]), v2); got != want || (len(object.Status.Admitted) == 1) != want {
			t.Errorf("proved %s ahead: %t, tickets %v", ahead, got, object.Status.Admitted)
		}
	}
}

// TestQuietByAClockAhead: the quiet time counts from now if it began later.
func TestQuietByAClockAhead(t *testing.T) {
	for name, test := range map[string]struct {
		before v1alpha1.RolloutStageStatus
		member rollout.Member
	}{
		"quiet":        {v1alpha1.RolloutStageStatus{QuietSince: seconds(noon.Add(time.Hour))}, memberOf("c", 0)},
		"quiet before": {v1alpha1.RolloutStageStatus{LastQuietSince: seconds(noon.Add(time.Hour))}, memberOf("c", 0)},
		"not now":      {v1alpha1.RolloutStageStatus{QuietSince: seconds(noon.Add(time.Hour))}, memberOf("c", 0, dead)},
	} {
		test.before.Name = "canary"

		object := policyOf()
		object.Status.Stages = []v1alpha1.RolloutStageStatus{test.before}
		object, _ = after(t, object, list(test.member), noon)
		stage := object.Status.Stages[0]

		if since := stage.QuietSince; name != "not now" && !since.Equal(seconds(noon)) {
			t.Errorf("%s: since %v", name, since)
		}

		if last := stage.LastQuietSince; name == "not now" && !last.Equal(seconds(noon)) {
			t.Errorf("%s: last since %v", name, last)
		}
	}
}
