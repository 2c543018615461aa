package rollout_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

// TestRemembered: a canary runs one version after another. The last ten stay proved; a skipped version is not proved.
func TestRemembered(t *testing.T) {
	object, now := policyOf(), noon

	for i := range 12 {
		member := memberOf("canary", 0, runs(fmt.Sprintf("v1.%d.0", 20+2*i), 0), func(m *rollout.Member) { m.Since = now })
		now = now.Add(time.Hour)
		object, _ = after(t, object, list(member), now)
	}

	got := kubernetes(object.Status.Stages[0])
	if len(got) != 10 || got[0] != "v1.24.0" || got[9] != "v1.42.0" {
		t.Fatalf("proved are %v", got)
	}

	for version, want := range map[string]string{
		"v1.24.0": "", "v1.42.0": "", // also an older one than it runs now
		"v1.22.0": v1alpha1.ReasonWaitingForStage, "v1.41.0": v1alpha1.ReasonWaitingForStage,
	} {
		if got := read(t, object).Judge(memberOf("c", 1, wants(version)), now).Reason; got != want {
			t.Errorf("%s: %q, want %q", version, got, want)
		}
	}

	if talos := object.Status.Stages[0].Qualified[0]; talos.Talos == "" {
		t.Errorf("Talos is not counted beside Kubernetes: %v", object.Status.Stages[0].Qualified)
	}
}

// TestForgottenStays drops a version that clusters still run. The next evaluation must not bring it back in place of
// another version.
func TestForgottenStays(t *testing.T) {
	object := policyOf()
	object.Status.Stages = []v1alpha1.RolloutStageStatus{{Name: "canary"}}

	var members []rollout.Member

	for i := range 12 {
		version := fmt.Sprintf("v1.%d.0", 20+i)
		members = append(members, memberOf(fmt.Sprintf("c%02d", i), 0, runs(version, time.Duration(20+i)*time.Hour)))

		// The first half was proved long ago, and is in the status already.
		if i < 6 {
			object.Status.Stages[0].Qualified = append(object.Status.Stages[0].Qualified,
				v1alpha1.QualifiedVersion{Kubernetes: version, Since: *seconds(noon.Add(-time.Duration(1000+i) * time.Hour))})
		}
	}

	first, _ := after(t, object, members, noon)
	second, _ := after(t, first, members, noon)

	if diff := cmp.Diff(first.Status, second.Status); diff != "" {
		t.Errorf("a second look (-want +got):\n%s", diff)
	}
}

// TestNothingProves tests the message if no cluster of a stage counts.
func TestNothingProves(t *testing.T) {
	for name, members := range map[string][]rollout.Member{
		"none": nil, "all paused": list(memberOf("a", 0, runs(v2, time.Hour), paused)), "all in conflict": list(memberOf("a", 0, runs(v2, time.Hour), conflict)),
	} {
		members = append(members, memberOf("z", 1, wants(v2)))
		object, _ := after(t, policyOf(), members, noon)

		if got := read(t, object).Judge(members[len(members)-1], noon); !strings.Contains(got.Message, "no clusters that count") {
			t.Errorf("%s: %q %s", name, got.Reason, got.Message)
		}

		if object.Status.Stages[0].QuietSince != nil {
			t.Errorf("%s: it is quiet", name)
		}
	}
}

// TestQuiet tests since when a stage is quiet that was quiet two hours ago.
func TestQuiet(t *testing.T) {
	before := seconds(noon.Add(-2 * time.Hour))
	patch := v1alpha1.ChangeMachineConfig
	fixing := func(m *rollout.Member) { failed("x")(m); atWork("h", patch)(m) }

	for name, test := range map[string]struct {
		members []rollout.Member
		want    time.Time
	}{
		"nothing to do":            {list(memberOf("c", 0)), before.Time},
		"a version waits":          {list(memberOf("c", 0, wants(v2))), before.Time},
		"a version is at work":     {list(memberOf("c", 0, atWork("h", v1alpha1.ChangeTalosVersion))), before.Time},
		"a patch waits":            {list(memberOf("c", 0, held("h", patch))), time.Time{}},
		"a patch beside a version": {list(memberOf("c", 0, held("h", v1alpha1.ChangeKubernetesVersion, v1alpha1.ChangeManifests))), time.Time{}},
		"a patch is at work":       {list(memberOf("c", 0, atWork("h", patch))), time.Time{}},
		"in a dead cluster":        {list(memberOf("c", 0, held("h", patch), dead), memberOf("d", 0)), before.Time},
		"in a paused cluster":      {list(memberOf("c", 0, held("h", patch), paused), memberOf("d", 0)), before.Time},
		"in a failed cluster":      {list(memberOf("c", 0, held("h", patch), failed("h")), memberOf("d", 0)), before.Time},
		"on the fix":               {list(memberOf("c", 0, fixing), memberOf("d", 0)), time.Time{}},
		"in conflict":              {list(memberOf("c", 0, held("h", patch), conflict), memberOf("d", 0)), before.Time},
		"only dead ones":           {list(memberOf("c", 0, dead)), time.Time{}},
		"only failed ones":         {list(memberOf("c", 0, failed("h"))), time.Time{}},
		"one that was not seen":    {list(memberOf("c", 0, unseen), memberOf("d", 0)), before.Time},
		"only ones not seen":       {list(memberOf("c", 0, unseen)), time.Time{}},
		"with a patch, not seen":   {list(memberOf("c", 0, held("h", patch), unseen), memberOf("d", 0)), time.Time{}},
		"only paused ones":         {list(memberOf("c", 0, paused)), time.Time{}},
		"no clusters":              {nil, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			object := policyOf()
			object.Status.Stages = []v1alpha1.RolloutStageStatus{{Name: "canary", QuietSince: before}}
			object, _ = after(t, object, test.members, noon)

			var got time.Time
			if since := object.Status.Stages[0].QuietSince; since != nil {
				got = since.Time
			}

			if !got.Equal(test.want) {
				t.Errorf("since %s, want %s", got, test.want)
			}

			// What is not quiet only because no cluster runs well is remembered.
			unwell := name == "only dead ones" || name == "only failed ones" || name == "only ones not seen"
			if last := object.Status.Stages[0].LastQuietSince; (last != nil) != unwell || unwell && !last.Equal(before) {
				t.Errorf("last quiet since %v", last)
			}
		})
	}

	object, _ := after(t, policyOf(), list(memberOf("c", 0)), noon.Add(500*time.Millisecond))
	if got := object.Status.Stages[0].QuietSince; got == nil || !got.Time.Equal(noon) {
		t.Errorf("seen first at noon: %v", got)
	}
}

// TestQuietAgain: the only cluster of a stage stops running well and comes back. The stage has been quiet all the time,
// unless the cluster comes back with a patch to make.
func TestQuietAgain(t *testing.T) {
	patch := v1alpha1.ChangeMachineConfig

	for name, test := range map[string]struct {
		steps []rollout.Member
		want  time.Time
	}{
		"not seen, and seen":       {list(memberOf("c", 0), memberOf("c", 0, unseen), memberOf("c", 0)), noon},
		"comes back":               {list(memberOf("c", 0), memberOf("c", 0, dead), memberOf("c", 0, dead), memberOf("c", 0)), noon},
		"with a version":           {list(memberOf("c", 0), memberOf("c", 0, wants(v2), dead), memberOf("c", 0, wants(v2))), noon},
		"failed, and mended":       {list(memberOf("c", 0), memberOf("c", 0, failed("h")), memberOf("c", 0)), noon},
		"with a patch":             {list(memberOf("c", 0), memberOf("c", 0, dead), memberOf("c", 0, held("h", patch))), time.Time{}},
		"after a patch":            {list(memberOf("c", 0), memberOf("c", 0, dead), memberOf("c", 0, atWork("h", patch)), memberOf("c", 0)), noon.Add(3 * time.Minute)},
		"dead while it makes one":  {list(memberOf("c", 0), memberOf("c", 0, atWork("h", patch)), memberOf("c", 0, dead), memberOf("c", 0)), noon.Add(3 * time.Minute)},
		"suspended, and goes on":   {list(memberOf("c", 0), memberOf("c", 0, paused), memberOf("c", 0)), noon.Add(2 * time.Minute)},
		"dead, suspended, goes on": {list(memberOf("c", 0), memberOf("c", 0, dead), memberOf("c", 0, dead, paused), memberOf("c", 0)), noon.Add(3 * time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			object := policyOf()
			for i, member := range test.steps {
				object, _ = after(t, object, list(member), noon.Add(time.Duration(i)*time.Minute))
			}

			var got time.Time
			if since := object.Status.Stages[0].QuietSince; since != nil {
				got = since.Time
			}

			if !got.Equal(test.want) || object.Status.Stages[0].LastQuietSince != nil {
				t.Errorf("since %s (%v), want %s", got, object.Status.Stages[0].LastQuietSince, test.want)
			}
		})
	}
}

// TestOpen says when the windows of a stage open and close, and nothing of those that never do.
func TestOpen(t *testing.T) {
	daily := func(zone string, days ...v1alpha1.Weekday) []v1alpha1.MaintenanceWindow {
		return []v1alpha1.MaintenanceWindow{{Days: days, Start: "00:00", Duration: "24h", TimeZone: zone}}
	}
	week := []v1alpha1.Weekday{v1alpha1.Monday, v1alpha1.Tuesday, v1alpha1.Wednesday, v1alpha1.Thursday, v1alpha1.Friday, v1alpha1.Saturday, v1alpha1.Sunday}

	for name, test := range map[string]struct {
		windows []v1alpha1.MaintenanceWindow
		from    string
		open    bool
		next    string
	}{
		"no windows":            {open: true},
		"always":                {windows: daily("UTC", week...), open: true},
		"always, but a freeze":  {windows: daily("UTC", week...), from: "2028-12-01T00:00:00Z", open: true, next: "2028-12-01T00:00:00Z"},
		"a day of 25 hours":     {windows: daily("Europe/Berlin", week...), open: true, next: "2027-10-31T23:00:00+01:00"},
		"closed":                {windows: daily("UTC", v1alpha1.Saturday), next: "2026-11-28T00:00:00Z"},
		"closed, and a freeze":  {windows: daily("UTC", v1alpha1.Saturday), from: "2026-11-27T00:00:00Z", next: "2026-12-05T00:00:00Z"},
		"open, and then closed": {windows: daily("UTC", v1alpha1.Wednesday), open: true, next: "2026-11-26T00:00:00Z"},
	} {
		object := policyOf(one(v1alpha1.RolloutStage{Windows: test.windows}))
		if test.from != "" {
			from := at(t, test.from)
			object.Spec.Freezes = []v1alpha1.RolloutFreeze{{Name: "f", From: *seconds(from), Until: *seconds(from.Add(48 * time.Hour))}}
		}

		object, result := after(t, object, nil, noon)
		got := object.Status.Stages[0]
		next := ""

		if got.NextChange != nil {
			next = shown(got.NextChange.Time)
		}

		want := test.next
		if want != "" {
			want = shown(at(t, want))
		}

		if got.Open != test.open || next != want || shown(result.Next) != want {
			t.Errorf("%s: open %t, next %s, wake-up %s; want %s", name, got.Open, next, shown(result.Next), want)
		}
	}
}
