package rollout_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

// TestAdmitted says who has a ticket after a look at noon.
func TestAdmitted(t *testing.T) {
	limit := func(value string) func(*v1alpha1.OmniRolloutPolicy) {
		return one(v1alpha1.RolloutStage{MaxConcurrent: share(value)})
	}
	alone, all := limit("1"), limit("100%")
	ofOther := func(m *rollout.Member) { m.Rollout.Policy = "other" }
	c := func(number int, changes ...func(*rollout.Member)) rollout.Member {
		return memberOf(fmt.Sprintf("c%d", number), 0, changes...)
	}
	h := wants(v2)
	work := atWork("hash-"+v2, v1alpha1.ChangeKubernetesVersion)

	for name, test := range map[string]struct {
		policy  []func(*v1alpha1.OmniRolloutPolicy)
		members []rollout.Member
		want    []string
	}{
		"one at a time by default":       {policy: list(one(v1alpha1.RolloutStage{})), members: many(3, 0, h), want: list("c000")},
		"a number":                       {policy: list(limit("2")), members: many(3, 0, h), want: list("c000", "c001")},
		"a percentage is rounded down":   {policy: list(limit("29%")), members: many(10, 0, h), want: list("c000", "c001")},
		"at least one":                   {policy: list(limit("1%")), members: many(10, 0, h), want: list("c000")},
		"all":                            {policy: list(all), members: many(3, 0, h), want: list("c000", "c001", "c002")},
		"the oldest first, then by name": {policy: list(limit("2")), members: list(c(3, h), c(2, h), c(9, h, heldSince(noon.Add(-2*time.Hour)))), want: list("c2", "c9")},
		"who does not say since when":    {policy: list(alone), members: list(c(1, h, func(m *rollout.Member) { m.Rollout.HeldSince = nil }), c(2, h)), want: list("c2")},
		"who gave a ticket back queues anew": {
			policy: list(alone), members: list(c(1, h, heldSince(noon.Add(-2*time.Hour)), lastly("x", v1alpha1.RolloutReturned, noon.Add(-time.Minute))), c(2, h)),
			want: list("c2"),
		},
		"but not for a ticket of long ago": {
			policy: list(alone), members: list(c(2, h, heldSince(noon.Add(-2*time.Hour)), lastly("x", v1alpha1.RolloutReturned, noon.Add(-3*time.Hour))), c(1, h)),
			want: list("c2"),
		},
		"a ticket takes a slot":           {policy: list(alone, ticket("c2", "prod", "hash-"+v2)), members: list(c(1, h), c(2, work)), want: list("c2")},
		"also before it is taken up":      {policy: list(alone, ticket("c2", "prod", "hash-"+v2)), members: list(c(1, h), c(2, h)), want: list("c2")},
		"a dead cluster with a ticket":    {policy: list(alone, ticket("c2", "prod", "hash-"+v2)), members: list(c(1, h), c(2, h, dead)), want: list("c2")},
		"work without a ticket is work":   {policy: list(alone), members: list(c(1, h), c(2, work)), want: []string{}},
		"a paused one takes no slot":      {policy: list(alone, ticket("c2", "prod", "hash-"+v2)), members: list(c(1, h), c(2, h, paused)), want: list("c1", "c2")},
		"nor at work":                     {policy: list(alone), members: list(c(1, h), c(2, work, paused)), want: list("c1")},
		"a ticket of a stage renamed":     {policy: list(alone, ticket("c2", "old", "hash-"+v2)), members: list(c(1, h), c(2, work)), want: list("c2")},
		"a ticket of one that left":       {policy: list(alone, ticket("c2", "prod", "hash-"+v2)), members: list(c(1, h), c(2, work, left)), want: list("c2")},
		"of one that left, with nothing":  {policy: list(alone, ticket("c2", "prod", "hash-"+v2)), members: list(c(1, h), c(2, left)), want: list("c1")},
		"of one that another policy has":  {policy: list(alone, ticket("c2", "prod", "hash-"+v2)), members: list(c(1, h), c(2, work, left, ofOther)), want: list("c1")},
		"failed ones free their slot":     {policy: list(alone, spec(func(s *v1alpha1.OmniRolloutPolicySpec) { s.MaxFailed = 1 })), members: list(c(1, h), c(2, failed("x"))), want: list("c1")},
		"dead, paused, left, in conflict": {policy: list(all), members: list(c(1, h, dead), c(2, h, paused), c(3, h, left), c(4, h, conflict), c(5, h)), want: list("c5")},
		"the share is of those that count": {
			policy:  list(limit("50%")),
			members: list(c(1, h), c(2, h), c(3, h), c(4, h, dead), c(5, h, paused), c(6, h, left), c(7, h, conflict)), want: list("c1"),
		},
		"of another policy": {policy: list(all), members: list(c(1, h, ofOther), c(2, h)), want: list("c2")},
		"without a hash":    {policy: list(all), members: list(c(1, held("")), c(2, h)), want: list("c2")},
		"never over 100":    {policy: list(all), members: many(150, 0, h), want: namesOf(many(100, 0))},
		"a failed one with the fix, while the rest is stopped": {policy: list(all), members: list(c(1, h), c(2, h, failed("x"))), want: list("c2")},
		"the fix, a minute after a ticket came back": {
			policy: list(all), members: list(c(2, h, failed("x"), dead, lastly("hash-"+v2, v1alpha1.RolloutReturned, noon.Add(-time.Minute)))), want: list("c2"),
		},
		"the fix, sooner": {
			policy: list(all), members: list(c(2, h, failed("x"), dead, lastly("hash-"+v2, v1alpha1.RolloutReturned, noon.Add(-59*time.Second)))), want: []string{},
		},
		"a failed one with the same": {policy: list(all), members: list(c(1, h, failed("hash-"+v2))), want: []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			object, _ := after(t, policyOf(test.policy...), test.members, noon)
			if diff := cmp.Diff(test.want, admitted(object.Status)); diff != "" {
				t.Errorf("who has a ticket (-want +got):\n%s", diff)
			}
		})
	}
}

func namesOf(members []rollout.Member) []string {
	var names []string
	for _, m := range members {
		names = append(names, m.Name)
	}

	return names
}

// TestTwoHundred gives more tickets than a policy may have.
func TestTwoHundred(t *testing.T) {
	object := policyOf()
	var members []rollout.Member

	for i := range object.Spec.Stages {
		object.Spec.Stages[i].MaxConcurrent = share("100")

		for n := range 90 {
			members = append(members, memberOf(fmt.Sprintf("%d-%02d", i, n), i, wants(v2)))
		}
	}

	proved(v2, "canary", "stage")(object)

	object, _ = after(t, object, members, noon)
	if got := len(object.Status.Admitted); got != 200 {
		t.Fatalf("%d tickets, want 200", got)
	}
}

// TestTicketKept tests what ends an hour-old ticket: the cluster's report, its deletion, or that it has left and nothing
// of this policy's is left in it: nobody would report the end of that turn.
func TestTicketKept(t *testing.T) {
	given := noon.Add(-time.Hour)
	ofOther := func(m *rollout.Member) { m.Rollout.Policy = "other" }
	ofNone := func(m *rollout.Member) { m.Rollout = v1alpha1.OmniClusterRollout{} }

	for name, test := range map[string]struct {
		member []rollout.Member
		kept   bool
	}{
		"not taken up":             {list(memberOf("c", 0, held("h"))), true},
		"taken up":                 {list(memberOf("c", 0, atWork("h"))), true},
		"it looks well, and done":  {list(memberOf("c", 0)), true},
		"other changes came":       {list(memberOf("c", 0, held("h2"))), true},
		"paused":                   {list(memberOf("c", 0, held("h"), paused)), true},
		"left, at work":            {list(memberOf("c", 0, atWork("h"), left)), true},
		"left, held":               {list(memberOf("c", 0, held("h"), left)), true},
		"left, nothing to do":      {list(memberOf("c", 0, left)), false},
		"left, no status":          {list(memberOf("c", 0, left, ofNone)), false},
		"of another now, at work":  {list(memberOf("c", 0, atWork("h"), left, ofOther)), false},
		"of another now, held":     {list(memberOf("c", 0, held("h"), left, ofOther)), false},
		"back from another":        {list(memberOf("c", 0, held("h"), ofOther)), true},
		"in conflict":              {list(memberOf("c", 0, atWork("h"), conflict)), true},
		"in another stage":         {list(memberOf("c", 2, atWork("h"))), true},
		"dead":                     {list(memberOf("c", 0, atWork("h"), dead)), true},
		"done":                     {list(memberOf("c", 0, lastly("h", v1alpha1.RolloutDone, noon))), false},
		"done in the same second":  {list(memberOf("c", 0, lastly("h", v1alpha1.RolloutDone, given))), false},
		"failed":                   {list(memberOf("c", 0, failed("h"), lastly("h", v1alpha1.RolloutUnsuccessful, noon))), false},
		"returned":                 {list(memberOf("c", 0, dead, lastly("h", v1alpha1.RolloutReturned, noon))), false},
		"done before, and again":   {list(memberOf("c", 0, held("h"), lastly("h", v1alpha1.RolloutDone, given.Add(-time.Second)))), true},
		"done with something else": {list(memberOf("c", 0, held("h"), lastly("h2", v1alpha1.RolloutDone, noon))), true},
		"gone":                     {list(memberOf("d", 0)), false},
		"made again":               {list(memberOf("c", 0, func(m *rollout.Member) { m.UID = "other" })), false},
	} {
		t.Run(name, func(t *testing.T) {
			object, _ := after(t, policyOf(ticket("c", "canary", "h"), spec(func(s *v1alpha1.OmniRolloutPolicySpec) { s.Hold = true })), test.member, noon)
			if kept := slices.Contains(admitted(object.Status), "c"); kept != test.kept {
				t.Errorf("kept: %t, want %t", kept, test.kept)
			}
		})
	}
}

// A ticket says for which object it is: one of the same name that is made again must not use it.
func TestTicketNamesItsCluster(t *testing.T) {
	object, _ := after(t, policyOf(), list(memberOf("c", 0, wants(v2))), noon)

	want := list(v1alpha1.RolloutTicket{Cluster: "c", UID: "uid-c", Stage: "canary", Hash: "hash-" + v2, Since: *seconds(noon)})
	if diff := cmp.Diff(want, object.Status.Admitted); diff != "" {
		t.Error(diff)
	}
}

// The cache has no order.
func TestOrderOfMembersDoesNotCount(t *testing.T) {
	members := list(
		memberOf("a", 0, atWork("h", v1alpha1.ChangeKubernetesVersion)), memberOf("b", 0, wants(v2)), memberOf("c", 0, paused),
		memberOf("d", 1, wants(v2)), memberOf("e", 0, failed("x")), memberOf("f", 2, runs(v2, time.Hour)),
	)
	tickets := policyOf(ticket("a", "canary", "h"), spec(func(s *v1alpha1.OmniRolloutPolicySpec) { s.MaxFailed = 3 }))

	reversed := slices.Clone(members)
	slices.Reverse(reversed)

	one, _ := after(t, tickets, members, noon)
	other, _ := after(t, tickets, reversed, noon)

	if diff := cmp.Diff(one.Status, other.Status); diff != "" {
		t.Error(diff)
	}
}

// A cluster that no stage takes gets no ticket and takes no slot, whatever its status and its old ticket say.
func TestClusterWithoutAStage(t *testing.T) {
	for name, change := range map[string]func(*rollout.Member){
		"held": wants(v2), "at work": atWork("h", v1alpha1.ChangeKubernetesVersion), "failed": failed("h"), "paused": paused,
	} {
		for _, stage := range []string{"", "canary", "former"} {
			t.Run(name+" "+stage, func(t *testing.T) {
				policy := policyOf()
				if stage != "" {
					policy = policyOf(ticket("none", stage, "h"))
				}

				object, _ := after(t, policy, list(memberOf("none", -1, change), memberOf("z", 2)), noon)
				if got := admitted(object.Status); slices.Contains(got, "none") != (stage != "") {
					t.Errorf("tickets: %q", got)
				}
			})
		}
	}
}

// TestTicketAgain holds the same changes again after a turn, so that the cluster gets a new ticket. The report about
// the old ticket must not end the new one: times are whole seconds, and may come from different clocks.
func TestTicketAgain(t *testing.T) {
	object := policyOf()

	for name, last := range map[string]time.Time{"the same second": noon, "a clock ahead": noon.Add(20 * time.Second)} {
		members := list(memberOf("c", 0, held("h"), lastly("h", v1alpha1.RolloutReturned, last)))

		early, result := after(t, object, members, noon.Add(500*time.Millisecond))
		if len(early.Status.Admitted) != 0 || !result.Next.Equal(last.Add(time.Second)) {
			t.Errorf("%s: a ticket that is over already, or no wake-up: %v, %s", name, early.Status.Admitted, result.Next)
		}

		late, _ := after(t, early, members, last.Add(time.Second))
		if len(late.Status.Admitted) != 1 || rollout.IsUsed(late.Status.Admitted[0], members[0].Rollout) {
			t.Errorf("%s: no ticket of use: %v", name, late.Status.Admitted)
		}
	}
}
