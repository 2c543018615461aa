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

// kubernetes are the versions of Kubernetes that a stage has proved.
func kubernetes(stage v1alpha1.RolloutStageStatus) []string {
	versions := []string{}

	for _, one := range stage.Qualified {
		if one.Kubernetes != "" {
			versions = append(versions, one.Kubernetes)
		}
	}

	return versions
}

// TestQualified tests whether a stage with a soak time of an hour has proved v2 at noon.
func TestQualified(t *testing.T) {
	c := func(number int, changes ...func(*rollout.Member)) rollout.Member {
		return memberOf(fmt.Sprintf("c%d", number), 0, changes...)
	}
	long, short := runs(v2, time.Hour), runs(v2, time.Hour-time.Second)
	behind := func(m *rollout.Member) { m.Behind = true }
	asked := func(m *rollout.Member) { m.WantedKubernetes = v2 } // its own controller has not seen it yet
	version, patch := v1alpha1.ChangeKubernetesVersion, v1alpha1.ChangeMachineConfig
	fixing := func(m *rollout.Member) { failed("x")(m); m.WantedKubernetes = v2; atWork("h", version)(m) }

	for name, test := range map[string]struct {
		needed  string
		members []rollout.Member
		want    bool
	}{
		"runs it for an hour":                    {members: list(c(1, long)), want: true},
		"a second too short":                     {members: list(c(1, short))},
		"a second one is new":                    {members: list(c(1, long), c(2, short)), want: true},
		"a second one was not well a moment ago": {members: list(c(1, long), c(2, runs(v2, 0)), c(3, long, dead)), want: true},
		"one, and others that do not ask":        {members: list(c(1, long), c(2), c(3)), want: true},
		"asked for, and not known to be":         {members: list(c(1, long), c(2, asked))},
		"asked for, and the status is behind":    {members: list(c(1, long), c(2, asked, behind))},
		"held":                                   {members: list(c(1, long), c(2, wants(v2)))},
		"at work":                                {members: list(c(1, long), c(2, asked, atWork("h", version)))},
		"at work on it, and runs it already":     {members: list(c(1, long), c(2, long, atWork("h", version)))},
		"runs it, and at work on something else": {members: list(c(1, runs(v2, 9*time.Hour)), c(2, long, atWork("h", patch)))},
		"held with something else":               {members: list(c(1, long), c(2, long, held("h", patch))), want: true},
		"held, not well":                         {members: list(c(1, long), c(2, wants(v2), dead)), want: true},
		"held, paused":                           {members: list(c(1, long), c(2, wants(v2), paused)), want: true},
		"held, failed":                           {members: list(c(1, long), c(2, wants(v2), failed("x"))), want: true},
		"failed":                                 {members: list(c(1, long), c(2, asked, failed("x"))), want: true},
		"failed, and at work on the fix":         {members: list(c(1, long), c(2, fixing))},
		"in conflict":                            {members: list(c(1, long), c(2, wants(v2), conflict)), want: true},
		"left":                                   {members: list(c(1, long), c(2, wants(v2), left)), want: true},
		"of another stage":                       {members: list(c(1, long), memberOf("c2", 1, wants(v2))), want: true},
		"only one that left":                     {members: list(c(1, long, left))},
		"only one that is paused":                {members: list(c(1, long, paused))},
		"only one that is not well":              {members: list(c(1, long, dead))},
		"only one that failed":                   {members: list(c(1, long, failed("x")))},
		"only one whose status is behind":        {members: list(c(1, long, behind))},
		"only one that was not seen":             {members: list(c(1, long, unseen))},
		"two have to, one of them was not seen":  {needed: "2", members: list(c(1, long), c(2, long, unseen))},
		"two have to, a third was not seen":      {needed: "2", members: list(c(1, long), c(2, long), c(3, long, unseen)), want: true},
		"half have to, more were not seen":       {needed: "50%", members: list(c(1, long), c(2, long, unseen), c(3, long, unseen))},
		"it has moved on":                        {members: list(c(1, long, wants(v3), func(m *rollout.Member) { m.Kubernetes = v2 })), want: true},
		"it is about to move on":                 {members: list(c(1, long, atWork("h", version), func(m *rollout.Member) { m.WantedKubernetes, m.Healthy = v3, true }))},
		"no clusters":                            {},
		"two have to":                            {needed: "2", members: list(c(1, long), c(2, long)), want: true},
		"two have to, one of them is too new":    {needed: "2", members: list(c(1, long), c(2, short))},
		"two have to, a third is too new":        {needed: "2", members: list(c(1, short), c(2, long), c(3, long)), want: true},
		"half have to, half are too new":         {needed: "50%", members: list(c(1, short), c(2, long), c(3, short), c(4, long)), want: true},
		"more than half have to":                 {needed: "51%", members: list(c(1, short), c(2, long), c(3, short), c(4, long))},
		"two have to, one does":                  {needed: "2", members: list(c(1, long), c(2))},
		"two have to, one is not well":           {needed: "2", members: list(c(1, long), c(2, long, dead))},
		"half of three are two":                  {needed: "50%", members: list(c(1, long), c(2), c(3))},
		"and that they are":                      {needed: "50%", members: list(c(1, long), c(2, long), c(3)), want: true},
		"half of those that count":               {needed: "50%", members: list(c(1, long), c(2), c(3, dead), c(4, paused)), want: true},
		"all have to, one broke with it":         {needed: "100%", members: list(c(1, long), c(2, long, dead))},
		"all have to, one broke before it":       {needed: "100%", members: list(c(1, long), c(2, dead)), want: true},
		"all have to, one is paused with it":     {needed: "100%", members: list(c(1, long), c(2, long, dead, paused)), want: true},
		"more than there are":                    {needed: "3", members: list(c(1, long), c(2, long))},
	} {
		t.Run(name, func(t *testing.T) {
			stage := v1alpha1.RolloutStage{}
			if test.needed != "" {
				stage.MinQualified = share(test.needed)
			}

			object, _ := after(t, policyOf(func(p *v1alpha1.OmniRolloutPolicy) { p.Spec.Stages[0].MinQualified = stage.MinQualified }), test.members, noon)
			if got := kubernetes(object.Status.Stages[0]); slices.Contains(got, v2) != test.want {
				t.Errorf("proved: %v; soaking %v", got, object.Status.Stages[0].Soaking)
			}
		})
	}
}

// TestFlapping: a cluster that stops running well each half hour does not keep the others' proof from counting. The proof
// is due when the second of three clusters has run the version for an hour.
func TestFlapping(t *testing.T) {
	object := policyOf(func(p *v1alpha1.OmniRolloutPolicy) { p.Spec.Stages[0].MinQualified = share("2") })

	for passed := time.Duration(0); passed <= time.Hour; passed += 10 * time.Minute {
		now := noon.Add(passed)
		members := list(memberOf("a", 0, runs(v2, 0)), memberOf("b", 0, runs(v2, 10*time.Minute)), memberOf("flaps", 0, runs(v2, 0)))
		members[2].Since = now.Truncate(30 * time.Minute)
		members[2].Healthy = passed%(30*time.Minute) != 0

		object, _ = after(t, object, members, now)
		status := object.Status.Stages[0]

		if proved := slices.Contains(kubernetes(status), v2); proved != (passed == time.Hour) {
			t.Errorf("proved after %s: %t", passed, proved)
		}

		if i := slices.IndexFunc(status.Soaking, func(one v1alpha1.SoakingVersion) bool { return one.Kubernetes == v2 }); i >= 0 && !status.Soaking[i].Until.Time.Equal(noon.Add(time.Hour)) {
			t.Errorf("after %s it soaks until %s", passed, status.Soaking[i].Until)
		}
	}
}

// TestNotSeen: a version goes on soaking after its time until the cluster has been seen. No time ends that.
func TestNotSeen(t *testing.T) {
	member := memberOf("c", 0, runs(v2, 2*time.Hour), unseen, func(m *rollout.Member) { m.Talos = "" })
	want := []v1alpha1.SoakingVersion{{Kubernetes: v2, Clusters: 1, Needed: 1, Until: seconds(noon.Add(-time.Hour))}}

	object, result := after(t, policyOf(), list(member), noon)
	if diff := cmp.Diff(want, object.Status.Stages[0].Soaking); diff != "" || !result.Next.IsZero() {
		t.Errorf("next %s (-want +got):\n%s", result.Next, diff)
	}

	verdict := read(t, object).Judge(memberOf("p", 1, wants(v2)), noon)
	if verdict.Reason != v1alpha1.ReasonWaitingForStage || !verdict.Next.IsZero() ||
		verdict.Message != `KubernetesVersion v1.36.1: stage "canary" runs it in 1 of 1 clusters, which omni-controller has yet to look at in Omni since it started` {
		t.Errorf("%+v", verdict)
	}

	// Another one has been seen, and is younger.
	object, result = after(t, object, list(member, memberOf("d", 0, runs(v2, 10*time.Minute), func(m *rollout.Member) { m.Talos = "" })), noon)
	if got := object.Status.Stages[0].Soaking; len(got) != 1 || !result.Next.Equal(noon.Add(50*time.Minute)) {
		t.Errorf("next %s, soaking %v", result.Next, got)
	}
}

// TestSoakingWakes: a version is proved at exactly the time that was announced.
func TestSoakingWakes(t *testing.T) {
	for _, offset := range []time.Duration{0, 300 * time.Millisecond} {
		soaked := noon.Add(20*time.Minute + offset)
		member := memberOf("c", 0, runs(v2, 0), func(m *rollout.Member) { m.Since, m.Talos = soaked.Add(-time.Hour), "" })

		object, result := after(t, policyOf(), list(member), noon)
		want := []v1alpha1.SoakingVersion{{Kubernetes: v2, Clusters: 1, Needed: 1, Until: seconds(soaked.Truncate(time.Second))}}

		if diff := cmp.Diff(want, object.Status.Stages[0].Soaking); diff != "" || !result.Next.Equal(soaked) {
			t.Fatalf("next %s (-want +got):\n%s", result.Next, diff)
		}

		if object, _ = after(t, object, list(member), soaked.Add(-time.Nanosecond)); slices.Contains(kubernetes(object.Status.Stages[0]), v2) {
			t.Error("it is early")
		}

		if object, _ = after(t, object, list(member), soaked); !slices.Contains(kubernetes(object.Status.Stages[0]), v2) || object.Status.Stages[0].Soaking != nil {
			t.Errorf("it is not proved: %v", object.Status.Stages[0])
		}
	}
}

// TestManySoaking has more versions than the status shows: each of them is proved in time.
func TestManySoaking(t *testing.T) {
	var members []rollout.Member
	for i := range 15 {
		members = append(members, memberOf(fmt.Sprintf("c%02d", i), 0, runs(fmt.Sprintf("v1.%d.0", 20+i), time.Duration(15-i)*time.Minute)))
	}

	object, now := policyOf(), noon
	for range 15 {
		var result rollout.Result

		object, result = after(t, object, members, now)
		if got := object.Status.Stages[0].Soaking; len(got) > 10 {
			t.Fatalf("%d are shown", len(got))
		}

		if want := noon.Add(now.Sub(noon).Truncate(time.Minute)); now.After(want) || !result.Next.After(now) {
			t.Fatalf("at %s the next is %s", now, result.Next)
		}

		now = result.Next
	}

	object, _ = after(t, object, members, now)
	if got := kubernetes(object.Status.Stages[0]); len(got) != 10 || got[0] != "v1.25.0" || got[9] != "v1.34.0" {
		t.Errorf("proved are %v", got)
	}

	again, _ := after(t, object, members, now)
	if diff := cmp.Diff(object.Status, again.Status); diff != "" {
		t.Errorf("a second look (-want +got):\n%s", diff)
	}
}
