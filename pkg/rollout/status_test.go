package rollout_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

// TestCounts tests the numbers of a status, with one cluster of every sort.
func TestCounts(t *testing.T) {
	members := list(
		memberOf("conflict", 0, wants(v2), conflict), memberOf("dead", 0, dead), memberOf("dead-held", 0, wants(v2), dead), memberOf("failed", 0, failed("x")),
		memberOf("held", 0, wants(v2)), memberOf("left", 0, wants(v2), left), memberOf("overridden", 0, atWork("o")), memberOf("paused", 0, wants(v2), paused),
		memberOf("well", 0), memberOf("working", 0, atWork("h")),
	)
	object, result := after(t, policyOf(ticket("working", "canary", "h")), members, noon)

	want := v1alpha1.RolloutStageStatus{Name: "canary", Clusters: 7, Held: 2, Admitted: 2, Failed: 1, NotReady: 1, Open: true}
	got := object.Status.Stages[0]
	got.Qualified, got.Soaking, got.QuietSince = nil, nil, nil

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the stage (-want +got):\n%s", diff)
	}

	// Changes that are held stay held after the cluster has left the policy: the policy's deletion needs a
	// confirmation.
	if object.Status.Held != 3 || object.Status.FailedCount != 1 || object.Status.ObservedGeneration != 3 {
		t.Errorf("held %d, failed %d, generation %d", object.Status.Held, object.Status.FailedCount, object.Status.ObservedGeneration)
	}

	wantFailed := []v1alpha1.FailedCluster{{Cluster: "failed", Since: *seconds(noon.Add(-time.Hour)), Message: "UpgradeFailed: no image"}}
	if diff := cmp.Diff(wantFailed, object.Status.Failed); diff != "" || result.Stopped != "1 failed (maxFailed is 0): failed (UpgradeFailed: no image); fix them in Git" {
		t.Errorf("failed: %s (-want +got):\n%s", result.Stopped, diff)
	}
}

// TestStopEnds: a stopped rollout goes on as soon as the failed cluster is healthy, deleted, or no longer of the
// policy.
func TestStopEnds(t *testing.T) {
	waits := memberOf("w", 0, wants(v2))

	object, result := after(t, policyOf(), list(memberOf("bad", 0, failed("x")), waits), noon)
	if result.Stopped == "" || len(object.Status.Admitted) != 0 {
		t.Fatalf("it goes on: %v", object.Status.Admitted)
	}

	for name, members := range map[string][]rollout.Member{
		"well": list(memberOf("bad", 0), waits), "gone": list(waits), "left": list(memberOf("bad", -1, failed("x"), left), waits),
		"allowed": list(memberOf("bad", 0, failed("x")), waits), "deleting": list(memberOf("bad", 0, failed("x"), paused, deleting), waits),
	} {
		again := object.DeepCopy()
		if name == "allowed" {
			again.Spec.MaxFailed = 1
		}

		next, result := after(t, again, members, noon.Add(time.Minute))
		if diff := cmp.Diff(list("w"), admitted(next.Status)); diff != "" || result.Stopped != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, result.Stopped, diff)
		}
	}

	for name, member := range map[string]rollout.Member{
		"paused": memberOf("bad", 0, failed("x"), paused), "well, but not as asked": memberOf("bad", 0, failed("x"), func(m *rollout.Member) { m.Healthy = true }),
	} {
		if next, result := after(t, object, list(member, waits), noon.Add(time.Minute)); result.Stopped == "" || len(next.Status.Admitted) != 0 {
			t.Errorf("%s: it goes on", name)
		}
	}
}

// TestFailedShown: the status names fifty failed clusters.
func TestFailedShown(t *testing.T) {
	object, _ := after(t, policyOf(), many(60, 0, failed("x")), noon)
	if len(object.Status.Failed) != 50 || object.Status.FailedCount != 60 || object.Status.Failed[49].Cluster != "c049" {
		t.Errorf("%d named of %d", len(object.Status.Failed), object.Status.FailedCount)
	}
}

// TestArrival delivers the objects of one commit in every order, the last stage first, minutes apart, with an
// evaluation after each.
func TestArrival(t *testing.T) {
	stageOf := []int{0, 0, 1, 1, 2, 2}

	for _, order := range permutations(len(stageOf)) {
		object, now := policyOf(), noon
		members := make([]rollout.Member, len(stageOf))

		for i, stage := range stageOf {
			members[i] = memberOf(fmt.Sprintf("c%d", i), stage)
		}

		for _, i := range order {
			members[i] = memberOf(members[i].Name, stageOf[i], wants(v2), heldSince(now))
			now = now.Add(10 * time.Minute)

			object, _ = after(t, object, append([]rollout.Member{}, members...), now)
			for _, ticket := range object.Status.Admitted {
				if ticket.Stage != "canary" {
					t.Fatalf("in order %v %s of stage %q begins first", order, ticket.Cluster, ticket.Stage)
				}
			}
		}

		if got := admitted(object.Status); len(got) != 1 {
			t.Fatalf("in order %v these begin: %v", order, got)
		}
	}
}

func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{{}}
	}

	var all [][]int

	for _, shorter := range permutations(n - 1) {
		for i := range n {
			all = append(all, append(append(append([]int{}, shorter[:i]...), n-1), shorter[i:]...))
		}
	}

	return all
}

// TestInputStays: Evaluate must not change the policy and the clusters, which come from the cache.
func TestInputStays(t *testing.T) {
	object := policyOf(proved(v3, "canary"), proved(v2, "stage"), ticket("z", "canary", "h"), ticket("c000", "canary", "h"))
	qualified := make([]v1alpha1.QualifiedVersion, 0, 20)
	for i, version := range list("v1.30.0", "v1.29.0", "v1.28.0") {
		qualified = append(qualified, v1alpha1.QualifiedVersion{Kubernetes: version, Since: *seconds(noon.Add(-time.Duration(i) * time.Hour))})
	}

	object.Status.Stages[0].Qualified = qualified
	object.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady}}
	before := object.DeepCopy()

	members := append(many(3, 0, wants(v2)), memberOf("a", 0, runs(v3, time.Hour)))
	wasFirst := members[0].Name

	read(t, object).Evaluate(members, noon)

	if diff := cmp.Diff(before, object); diff != "" {
		t.Errorf("the policy is another one (-want +got):\n%s", diff)
	}

	if behind := qualified[:4][3]; behind != (v1alpha1.QualifiedVersion{}) {
		t.Errorf("written behind the list of the policy: %v", behind)
	}

	if members[0].Name != wasFirst {
		t.Error("the clusters are in another order")
	}
}
