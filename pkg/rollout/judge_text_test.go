package rollout_test

import (
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

// TestJudgeSays tests the messages word by word, and the times: when changes may begin, and when the verdict may
// change.
func TestJudgeSays(t *testing.T) {
	weekend := func(zone string) func(*v1alpha1.OmniRolloutPolicy) {
		return one(v1alpha1.RolloutStage{Windows: []v1alpha1.MaintenanceWindow{
			{Days: []v1alpha1.Weekday{v1alpha1.Saturday, v1alpha1.Sunday}, Start: "02:00", Duration: "4h", TimeZone: zone},
		}})
	}
	freeze := func(name, from, until string) func(*v1alpha1.OmniRolloutPolicy) {
		return func(p *v1alpha1.OmniRolloutPolicy) {
			// The API decodes times in the zone of the process.
			local := time.FixedZone("", 3*3600)
			p.Spec.Freezes = append(p.Spec.Freezes, v1alpha1.RolloutFreeze{Name: name, From: *seconds(at(t, from).In(local)), Until: *seconds(at(t, until).In(local))})
		}
	}
	in := func(zone string) func(*rollout.Member) { return func(m *rollout.Member) { m.Zone = zone } }
	soaking := func(clusters, needed int32, until time.Time) func(*v1alpha1.OmniRolloutPolicy) {
		return func(p *v1alpha1.OmniRolloutPolicy) {
			one := v1alpha1.SoakingVersion{Kubernetes: v2, Clusters: clusters, Needed: needed}
			if !until.IsZero() {
				one.Until = seconds(until)
			}

			p.Status.Stages = []v1alpha1.RolloutStageStatus{{Name: "canary", Clusters: 6, Soaking: []v1alpha1.SoakingVersion{one}}}
		}
	}
	stage := func(number int) func(*rollout.Member) { return func(m *rollout.Member) { m.Stage = number } }
	patch := func(since time.Duration) func(*rollout.Member) {
		return func(m *rollout.Member) {
			held("h", v1alpha1.ChangeMachineConfig)(m)
			m.Stage, m.Rollout.HeldSince = 1, seconds(noon.Add(-since))
		}
	}
	quiet := func(ago time.Duration) func(*v1alpha1.OmniRolloutPolicy) {
		return func(p *v1alpha1.OmniRolloutPolicy) {
			p.Status.Stages = []v1alpha1.RolloutStageStatus{{Name: "canary", Clusters: 6, QuietSince: seconds(noon.Add(-ago))}}
		}
	}

	promoted := func(stage, until string) func(*v1alpha1.OmniRolloutPolicy) {
		return func(p *v1alpha1.OmniRolloutPolicy) {
			p.Annotations = map[string]string{v1alpha1.AnnotationPromotePrefix + stage: until}
		}
	}

	for name, test := range map[string]struct {
		policy            []func(*v1alpha1.OmniRolloutPolicy)
		member            []func(*rollout.Member)
		says, begin, next string
	}{
		"not looked at": {policy: list(func(p *v1alpha1.OmniRolloutPolicy) { p.Generation++ }), says: "the policy has changed, and was not looked at yet"},
		"on hold":       {policy: list(func(p *v1alpha1.OmniRolloutPolicy) { p.Spec.Hold = true }), says: "spec.hold of the policy is set, until it is released: kubectl omni hold production -n fleet --release"},
		"stalled":       {policy: list(lines[1].policy), says: "the policy is stalled: the clock is wrong"},
		"no stage":      {member: list(stage(-1)), says: "no stage takes the cluster"},
		"bad zone": {
			policy: list(weekend("UTC")), member: list(in("CET")),
			says: `annotation omni.texashpc.com/time-zone: "CET" is not a time zone that says which rules it follows: use "UTC", or a name of the IANA database with a slash, such as "Europe/Berlin"`,
		},
		"bad zone where there are no windows": {member: list(in("CET")), says: ""},
		"window": {
			policy: list(weekend("Europe/Berlin")), member: list(stage(0)),
			says: "until Sat 2026-11-28 02:00 CET", begin: "2026-11-28T02:00:00+01:00", next: "2026-11-28T02:00:00+01:00",
		},
		"window in the cluster's zone": {
			policy: list(weekend("Europe/Berlin")), member: list(stage(0), in("America/New_York")),
			says: "until Sat 2026-11-28 02:00 EST", begin: "2026-11-28T02:00:00-05:00", next: "2026-11-28T02:00:00-05:00",
		},
		"freeze": {
			policy: list(freeze("year-end", "2026-11-20T00:00:00+01:00", "2027-01-07T00:00:00+01:00")),
			says:   `until Wed 2027-01-06 23:00 UTC by the freeze "year-end"`, begin: "2027-01-07T00:00:00+01:00", next: "2027-01-07T00:00:00+01:00",
		},
		"freeze, and a window later": {
			policy: list(weekend("Europe/Berlin"), freeze("year-end", "2026-11-20T00:00:00+01:00", "2027-01-07T00:00:00+01:00")), member: list(stage(0)),
			says:  `until Thu 2027-01-07 00:00 CET by the freeze "year-end"; nothing begins before Sat 2027-01-09 02:00 CET`,
			begin: "2027-01-09T02:00:00+01:00", next: "2027-01-07T00:00:00+01:00",
		},
		"freeze after freeze": {
			policy: list(freeze("a", "2026-11-20T00:00:00Z", "2026-11-26T00:00:00Z"), freeze("b", "2026-11-25T18:00:00Z", "2026-11-27T00:00:00Z")),
			says:   `until Thu 2026-11-26 00:00 UTC by the freeze "a"; nothing begins before Fri 2026-11-27 00:00 UTC`,
			begin:  "2026-11-27T00:00:00Z", next: "2026-11-25T18:00:00Z",
		},
		"window until a freeze ends": {
			policy: list(weekend("Europe/Berlin"), freeze("a", "2026-11-28T00:00:00Z", "2026-11-28T04:00:00Z")), member: list(stage(0)),
			says: "until Sat 2026-11-28 05:00 CET", begin: "2026-11-28T04:00:00Z", next: "2026-11-28T00:00:00Z",
		},
		"cluster not well": {
			member: list(dead),
			says:   "the cluster has to run well before a change begins; if it needs the change for that, let it begin all the same: kubectl omni override c -n fleet --reason <why>",
		},
		"failed here": {
			member: list(failed("hash-" + v2)), says: "these changes failed here (UpgradeFailed: no image); fix them in the objects, or let them begin once more: kubectl omni override c -n fleet --reason <why>",
		},
		"stopped": {
			policy: list(func(p *v1alpha1.OmniRolloutPolicy) {
				p.Status.FailedCount = 5
				for _, name := range []string{"a", "b", "c", "d"} {
					p.Status.Failed = append(p.Status.Failed, v1alpha1.FailedCluster{Cluster: name, Message: "deadline"})
				}
				p.Status.Failed[1].Message = ""
			}),
			says: "5 failed (maxFailed is 0): a (deadline), b, c (deadline), and others; fix them in Git, or let this cluster begin all the same: kubectl omni override c -n fleet --reason <why>",
		},
		"manual": {
			policy: list(lines[6].policy), member: list(stage(2)),
			says: "until somebody promotes the stage: kubectl omni promote production prod -n fleet --for <how long>",
		},
		"manual, and the window is closed": {
			policy: list(lines[6].policy, lines[8].policy), member: list(stage(2)), next: "2026-11-28T02:00:00Z",
			says: "until somebody promotes the stage, for longer than until it opens, Sat 2026-11-28 02:00 UTC: " +
				"kubectl omni promote production prod -n fleet --for <how long>",
		},
		"frozen, and a promotion is missing": {
			policy: list(lines[6].policy, lines[3].policy), member: list(stage(2)), next: "2026-11-25T13:00:00Z",
			says: `until Wed 2026-11-25 13:00 UTC by the freeze "sale"; then somebody has to promote the stage: ` +
				"kubectl omni promote production prod -n fleet --for <how long>",
		},
		"frozen, and promoted for long enough": {
			policy: list(lines[6].policy, lines[3].policy, promoted("prod", "2026-11-25T13:00:01Z")), member: list(stage(2)),
			says: `until Wed 2026-11-25 13:00 UTC by the freeze "sale"`, begin: "2026-11-25T13:00:00Z", next: "2026-11-25T13:00:00Z",
		},
		"promoted, and the window opens too late": {
			policy: list(lines[6].policy, lines[8].policy, promoted("prod", "2026-11-28T02:00:00Z")), member: list(stage(2)), next: "2026-11-28T02:00:00Z",
			says: "until Sat 2026-11-28 02:00 UTC; but the promotion of the stage ends before, Sat 2026-11-28 02:00 UTC: " +
				"kubectl omni promote production prod -n fleet --for <how long>",
		},
		"promoted though not proved, and the window opens too late": {
			policy: list(lines[8].policy, promoted("prod", "2026-11-26T12:00:00Z")), member: list(stage(2)), next: "2026-11-26T12:00:00Z",
			says: "until Sat 2026-11-28 02:00 UTC; the promotion of the stage ends before, Thu 2026-11-26 12:00 UTC: " +
				"the earlier stages have to have proved the change by then",
			begin: "2026-11-28T02:00:00Z",
		},
		"promoted though proved, and the window opens late": {
			policy: list(proved(v2, "canary", "stage"), lines[8].policy, promoted("prod", "2026-11-26T12:00:00Z")), member: list(stage(2)),
			says:  "until Sat 2026-11-28 02:00 UTC",
			begin: "2026-11-28T02:00:00Z", next: "2026-11-26T12:00:00Z",
		},
		"no clusters": {
			policy: list(func(p *v1alpha1.OmniRolloutPolicy) { p.Status.Stages = []v1alpha1.RolloutStageStatus{{Name: "canary"}} }), member: list(stage(1)),
			says: `KubernetesVersion v1.36.1: stage "canary" has no clusters that count, and so it proves nothing`,
		},
		"not run": {
			policy: list(func(p *v1alpha1.OmniRolloutPolicy) {
				p.Status.Stages = []v1alpha1.RolloutStageStatus{{Name: "canary", Clusters: 1}}
			}), member: list(stage(1)),
			says: `KubernetesVersion v1.36.1: stage "canary" does not run it yet`,
		},
		"run by too few": {
			policy: list(soaking(2, 4, time.Time{})), member: list(stage(1)),
			says: `KubernetesVersion v1.36.1: stage "canary" runs it in 2 of 6 clusters, needs 4`,
		},
		"run, and one has to get it": {
			policy: list(soaking(5, 4, time.Time{})), member: list(stage(1)),
			says: `KubernetesVersion v1.36.1: stage "canary" runs it in 5 of 6 clusters, and others still have to get it`,
		},
		"soaks": {
			policy: list(soaking(4, 4, noon.Add(time.Hour))), member: list(stage(1)),
			says: `KubernetesVersion v1.36.1: stage "canary" runs it in 4 of 6 clusters, soaks until Wed 2026-11-25 13:00 UTC`,
		},
		"soaks, and the stage has windows": {
			policy: list(soaking(4, 4, noon.Add(time.Hour)), lines[8].policy), member: list(stage(2)), next: "2026-11-28T02:00:00Z",
			says: `KubernetesVersion v1.36.1: stage "canary" runs it in 4 of 6 clusters, soaks until Wed 2026-11-25 13:00 UTC; then in a window of stage "prod"`,
		},
		"not quiet, and the stage has windows": {
			policy: list(quiet(0), func(p *v1alpha1.OmniRolloutPolicy) { p.Status.Stages[0].QuietSince = nil }, lines[8].policy),
			member: list(patch(time.Hour), stage(2)), next: "2026-11-28T02:00:00Z",
			says: `stage "canary" has changes that wait or are at work, or no cluster that runs well; then in a window of stage "prod"`,
		},
		"not quiet": {
			policy: list(quiet(0), func(p *v1alpha1.OmniRolloutPolicy) { p.Status.Stages[0].QuietSince = nil }), member: list(patch(time.Hour)),
			says: `stage "canary" has changes that wait or are at work, or no cluster that runs well`,
		},
		"quiet before, and no cluster that was seen": {
			policy: list(quiet(0), func(p *v1alpha1.OmniRolloutPolicy) {
				p.Status.Stages[0].QuietSince, p.Status.Stages[0].LastQuietSince = nil, p.Status.Stages[0].QuietSince
			}), member: list(patch(time.Hour)),
			says: `stage "canary" has changes that wait or are at work, or no cluster that runs well and was looked at in Omni since omni-controller started`,
		},
		"quiet, and soaks": {
			policy: list(quiet(20 * time.Minute)), member: list(patch(time.Hour)),
			says: `stage "canary" soaks until Wed 2026-11-25 12:40 UTC`, next: "2026-11-25T12:40:00Z",
		},
		"not seen for long enough": {
			policy: list(quiet(time.Hour)), member: list(patch(10 * time.Minute)),
			says: "changes are seen for 15m before a later stage takes them", next: "2026-11-25T12:05:00Z",
		},
		"another change came": {
			policy: list(quiet(time.Hour)), member: list(patch(48*time.Hour), func(m *rollout.Member) { m.Rollout.ChangedSince = seconds(noon.Add(-5 * time.Minute)) }),
			says: "changes are seen for 15m before a later stage takes them", next: "2026-11-25T12:10:00Z",
		},
		"seen for long enough": {policy: list(quiet(time.Hour)), member: list(patch(15 * time.Minute))},
		"promoted": {
			policy: list(promoted("stage", "2026-11-26T01:00:00+02:00")), member: list(stage(1)), next: "2026-11-25T23:00:00Z",
		},
		"promoted for too long, as yet": {
			policy: list(promoted("stage", "2026-12-03T12:00:00Z"), soaking(4, 4, noon.Add(time.Hour))), member: list(stage(1)), next: "2026-11-26T12:00:00Z",
			says: `KubernetesVersion v1.36.1: stage "canary" runs it in 4 of 6 clusters, soaks until Wed 2026-11-25 13:00 UTC`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			member := memberOf("c", 0, append(list(wants(v2)), test.member...)...)
			got := read(t, policyOf(test.policy...)).Judge(member, noon)

			if got.Message != test.says {
				t.Errorf("it says\n%s, want\n%s", got.Message, test.says)
			}

			for name, instant := range map[string][2]string{"begin": {shown(got.NotBefore), test.begin}, "next": {shown(got.Next), test.next}} {
				if want := ""; test.says != "" || name == "next" {
					if instant[1] != "" {
						want = shown(at(t, instant[1]))
					}

					if instant[0] != want {
						t.Errorf("%s is %s, want %s", name, instant[0], want)
					}
				}
			}
		})
	}
}

func shown(instant time.Time) string {
	if instant.IsZero() {
		return ""
	}

	return instant.UTC().Format(time.RFC3339)
}
