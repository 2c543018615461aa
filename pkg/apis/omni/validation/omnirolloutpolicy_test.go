package validation

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func tier(value string) *v1alpha1.ClusterSelector {
	return &v1alpha1.ClusterSelector{MatchLabels: map[string]string{"tier": value}}
}

// validPolicy has two stages: canary, and prod with a window. It sets nothing that has a default.
func validPolicy() *v1alpha1.OmniRolloutPolicy {
	return &v1alpha1.OmniRolloutPolicy{
		ObjectMeta: meta("production"),
		Spec: v1alpha1.OmniRolloutPolicySpec{
			ClusterSelector: &v1alpha1.ClusterSelector{},
			Stages: []v1alpha1.RolloutStage{
				{Name: "canary", ClusterSelector: tier("canary")},
				{Name: "prod", Windows: []v1alpha1.MaintenanceWindow{
					{Days: []v1alpha1.Weekday{"Sat", "Sun"}, Start: "02:00", Duration: "4h", TimeZone: "Europe/Berlin"},
				}},
			},
		},
	}
}

// policySpec and firstStage are changes of a part of a policy.
func policySpec(change func(*v1alpha1.OmniRolloutPolicySpec)) func(*v1alpha1.OmniRolloutPolicy) {
	return func(p *v1alpha1.OmniRolloutPolicy) { change(&p.Spec) }
}

func firstStage(change func(*v1alpha1.RolloutStage)) func(*v1alpha1.OmniRolloutPolicy) {
	return func(p *v1alpha1.OmniRolloutPolicy) { change(&p.Spec.Stages[0]) }
}

func shares(values ...string) func(*v1alpha1.OmniRolloutPolicy) {
	return firstStage(func(s *v1alpha1.RolloutStage) {
		most, least := intstr.Parse(values[0]), intstr.Parse(values[1])
		s.MaxConcurrent, s.MinQualified = &most, &least
	})
}

func freezes(list ...v1alpha1.RolloutFreeze) func(*v1alpha1.OmniRolloutPolicy) {
	return func(p *v1alpha1.OmniRolloutPolicy) { p.Spec.Freezes = list }
}

// freeze begins now and lasts for a time.
func freeze(name string, long time.Duration) v1alpha1.RolloutFreeze {
	from := time.Date(2026, 12, 18, 0, 0, 0, 0, time.FixedZone("", 3600))

	return v1alpha1.RolloutFreeze{Name: name, From: metav1.NewTime(from), Until: metav1.NewTime(from.Add(long))}
}

func promote(stage, until string) func(*v1alpha1.OmniRolloutPolicy) {
	return func(p *v1alpha1.OmniRolloutPolicy) {
		p.Annotations = map[string]string{"omni.texashpc.com/promote-" + stage: until, "example.com/promote-x": "y"}
	}
}

func ahead(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }

func stages(number int) func(*v1alpha1.OmniRolloutPolicy) {
	return func(p *v1alpha1.OmniRolloutPolicy) {
		p.Spec.Stages = []v1alpha1.RolloutStage{{Name: "last"}}
		for i := 1; i < number; i++ {
			p.Spec.Stages = append([]v1alpha1.RolloutStage{{Name: fmt.Sprintf("s%d", i), ClusterSelector: tier("x")}}, p.Spec.Stages...)
		}
	}
}

func manyFreezes(number int) func(*v1alpha1.OmniRolloutPolicy) {
	return func(p *v1alpha1.OmniRolloutPolicy) {
		for i := range number {
			p.Spec.Freezes = append(p.Spec.Freezes, freeze(fmt.Sprintf("f%d", i), time.Hour))
		}
	}
}

const day = 24 * time.Hour

func TestValidateOmniRolloutPolicy(t *testing.T) {
	checkRules(t, validPolicy, ValidateOmniRolloutPolicy, []row[v1alpha1.OmniRolloutPolicy]{
		{name: "valid"},
		{"one stage for all", stages(1), nil},
		{"ten stages", stages(10), nil},
		{"every kind of change", policySpec(func(s *v1alpha1.OmniRolloutPolicySpec) {
			s.Changes = []v1alpha1.ChangeKind{"KubernetesVersion", "TalosVersion", "MachineConfig", "MachineImage", "MachineRemoval", "Manifests"}
		}), nil},
		{"the least of everything", func(p *v1alpha1.OmniRolloutPolicy) {
			shares("1", "1%")(p)
			p.Spec.Stages[0].SoakTime, p.Spec.ArrivalTime, p.Spec.ProgressDeadline = "0s", "0s", "10m"
			p.Spec.Freezes = []v1alpha1.RolloutFreeze{freeze("a", time.Second)}
		}, nil},
		{"the most of everything", func(p *v1alpha1.OmniRolloutPolicy) {
			shares("100%", "100")(p)
			p.Spec.Stages[0].SoakTime, p.Spec.ArrivalTime, p.Spec.ProgressDeadline = "720h", "24h", "48h"
			p.Spec.MaxFailed, p.Spec.Hold, p.Spec.Stages[0].Promotion = 100, true, v1alpha1.PromotionManual
			manyFreezes(20)(p)
			p.Spec.Freezes[0] = freeze("long", 120*day)
		}, nil},
		{"promoted", promote("prod", ahead(7*day-time.Minute)), nil},
		{"the longest name, promoted", func(p *v1alpha1.OmniRolloutPolicy) {
			p.Spec.Stages[1].Name = strings.Repeat("a", 55)
			promote(p.Spec.Stages[1].Name, ahead(time.Hour))(p)
		}, nil},
		{"promoted by local time", promote("canary", time.Now().In(time.FixedZone("", -7200)).Format(time.RFC3339)), nil},
		{"promoted until yesterday", promote("prod", ahead(-day)), nil},

		// The texts of these are those of Kubernetes.
		{"bad name", func(p *v1alpha1.OmniRolloutPolicy) { p.Name = "A" }, []string{"metadata.name: Invalid value"}},
		{"bad selectors", func(p *v1alpha1.OmniRolloutPolicy) {
			p.Spec.ClusterSelector = &v1alpha1.ClusterSelector{MatchLabels: map[string]string{"a b": "c"}}
			p.Spec.Stages[0].ClusterSelector = &v1alpha1.ClusterSelector{MatchExpressions: []v1alpha1.ClusterSelectorRequirement{{Key: "a", Operator: "Has"}}}
		}, []string{"spec.clusterSelector.matchLabels: Invalid value", "spec.stages[0].clusterSelector.matchExpressions[0].operator: Invalid value"}},
		{"bad value in a selector", firstStage(func(s *v1alpha1.RolloutStage) { s.ClusterSelector = tier("a b") }),
			[]string{"spec.stages[0].clusterSelector.matchLabels: Invalid value"}},
		{"stages without a name", func(p *v1alpha1.OmniRolloutPolicy) { p.Spec.Stages[0].Name, p.Spec.Stages[1].Name = "", "A" },
			[]string{"spec.stages[0].name: Invalid value", "spec.stages[1].name: Invalid value"}},
		{"one name twice", firstStage(func(s *v1alpha1.RolloutStage) { s.Name = "prod" }), []string{"spec.stages[1].name: Duplicate value"}},
		{"eleven stages", stages(11), []string{"spec.stages: Too many"}},
		{"unknown promotion", firstStage(func(s *v1alpha1.RolloutStage) { s.Promotion = "manual" }), []string{"spec.stages[0].promotion: Unsupported value"}},
		{"unknown changes", policySpec(func(s *v1alpha1.OmniRolloutPolicySpec) {
			s.Changes = []v1alpha1.ChangeKind{"", "Free", "Manifests", "Manifests"}
		}),
			[]string{"spec.changes[0]: Unsupported value", "spec.changes[1]: Unsupported value", "spec.changes[3]: Duplicate value"}},
		{"21 freezes", manyFreezes(21), []string{"spec.freezes: Too many"}},
		{"bad names of freezes", freezes(freeze("", time.Hour), freeze("A", time.Hour), freeze("a", time.Hour), freeze("a", time.Hour)),
			[]string{"spec.freezes[0].name: Invalid value", "spec.freezes[1].name: Invalid value", "spec.freezes[3].name: Duplicate value"}},
	})
}

// TestListsThatAreTooLong: nothing looks at the elements of a list that is refused for its length. What was looked at
// grew with the square of it.
func TestListsThatAreTooLong(t *testing.T) {
	const number = 1000

	checkRules(t, validPolicy, ValidateOmniRolloutPolicy, []row[v1alpha1.OmniRolloutPolicy]{
		{"changes", policySpec(func(s *v1alpha1.OmniRolloutPolicySpec) { s.Changes = make([]v1alpha1.ChangeKind, number) }), []string{"spec.changes: Too many"}},
		{"stages", policySpec(func(s *v1alpha1.OmniRolloutPolicySpec) { s.Stages = make([]v1alpha1.RolloutStage, number) }), []string{"spec.stages: Too many"}},
		{"freezes", policySpec(func(s *v1alpha1.OmniRolloutPolicySpec) { s.Freezes = make([]v1alpha1.RolloutFreeze, number) }), []string{"spec.freezes: Too many"}},
		{"windows", firstStage(func(s *v1alpha1.RolloutStage) { s.Windows = make([]v1alpha1.MaintenanceWindow, number) }), []string{"spec.stages[0].windows: Too many"}},
		{"days", firstStage(func(s *v1alpha1.RolloutStage) {
			s.Windows = []v1alpha1.MaintenanceWindow{*validWindow()}
			s.Windows[0].Days = make([]v1alpha1.Weekday, number)
		}), []string{"spec.stages[0].windows[0].days: Too many"}},
	})
}

// TestRemediesOfOmniRolloutPolicy: these errors are ours, and say what to do.
func TestRemediesOfOmniRolloutPolicy(t *testing.T) {
	const share = "must be a number from 1 to 100, or a percentage from 1% to 100%"

	checkRemedies(t, validPolicy, ValidateOmniRolloutPolicy, []row[v1alpha1.OmniRolloutPolicy]{
		{"no selector", policySpec(func(s *v1alpha1.OmniRolloutPolicySpec) { s.ClusterSelector = nil }),
			[]string{"spec.clusterSelector: select OmniClusters by their labels; {} selects all"}},
		{"no changes", policySpec(func(s *v1alpha1.OmniRolloutPolicySpec) { s.Changes = []v1alpha1.ChangeKind{} }),
			[]string{"spec.changes: name at least one kind of change, or leave it out for all"}},
		{"no stages", policySpec(func(s *v1alpha1.OmniRolloutPolicySpec) { s.Stages = nil }), []string{"spec.stages: name at least one stage"}},
		{"a stage without a selector", firstStage(func(s *v1alpha1.RolloutStage) { s.ClusterSelector = nil }),
			[]string{"spec.stages[0].clusterSelector: select the stage's clusters; only the last stage takes the rest"}},
		{"a last stage with one", func(p *v1alpha1.OmniRolloutPolicy) { p.Spec.Stages[1].ClusterSelector = tier("prod") },
			[]string{"spec.stages[1].clusterSelector: the last stage takes all clusters that no other takes: leave it out"}},
		{"shares of 0", shares("0", "0%"), []string{"spec.stages[0].maxConcurrent: " + share, "spec.stages[0].minQualified: " + share}},
		{"shares of 101", shares("101", "101%"), []string{"spec.stages[0].maxConcurrent: " + share, "spec.stages[0].minQualified: " + share}},
		{"shares that are none", shares("-1", "all"), []string{"spec.stages[0].maxConcurrent: " + share, "spec.stages[0].minQualified: " + share}},
		{"times too short", func(p *v1alpha1.OmniRolloutPolicy) {
			p.Spec.Stages[0].SoakTime, p.Spec.ArrivalTime, p.Spec.ProgressDeadline, p.Spec.MaxFailed = "-1s", "-1s", "9m59s", -1
		}, []string{
			"spec.stages[0].soakTime: must be at least 0s", "spec.arrivalTime: must be at least 0s",
			"spec.progressDeadline: must be at least 10m", "spec.maxFailed: must be from 0 to 100",
		}},
		{"times too long", func(p *v1alpha1.OmniRolloutPolicy) {
			p.Spec.Stages[0].SoakTime, p.Spec.ArrivalTime, p.Spec.ProgressDeadline, p.Spec.MaxFailed = "721h", "24h1s", "49h", 101
		}, []string{
			"spec.stages[0].soakTime: must be at most 720h", "spec.arrivalTime: must be at most 24h",
			"spec.progressDeadline: must be at most 48h", "spec.maxFailed: must be from 0 to 100",
		}},
		{"times that are none", firstStage(func(s *v1alpha1.RolloutStage) { s.SoakTime = "1d" }),
			[]string{"spec.stages[0].soakTime: must be a duration such as 30s, 10m or 24h"}},
		{"freezes without times", freezes(v1alpha1.RolloutFreeze{Name: "a"}, v1alpha1.RolloutFreeze{Name: "b", From: metav1.Now()}), []string{
			"spec.freezes[0].from: say when it begins, such as 2026-12-17T23:00:00Z",
			"spec.freezes[1].until: say when it ends, such as 2027-01-06T23:00:00Z",
		}},
		{"freezes of no length, and too long", freezes(freeze("a", 0), freeze("b", -time.Hour), freeze("c", 120*day+time.Second)), []string{
			"spec.freezes[0].until: must be after from", "spec.freezes[1].until: must be after from",
			"spec.freezes[2].until: must be at most 120 days after from: make two of it",
		}},
		{"a name that no annotation can have", firstStage(func(s *v1alpha1.RolloutStage) { s.Name = strings.Repeat("a", 56) }), []string{
			"spec.stages[0].name: must have at most 55 characters: the annotation that promotes the stage, omni.texashpc.com/promote-<name>, may have 63 behind the slash",
		}},
		{"a stage promoted that does not exist", promote("stage", ahead(time.Hour)),
			[]string{"metadata.annotations[omni.texashpc.com/promote-stage]: the policy has no such stage: end the key with the name of one"}},
		{"promoted until nobody knows when", promote("prod", "tomorrow"),
			[]string{"metadata.annotations[omni.texashpc.com/promote-prod]: say until when the stage may begin, such as 2026-11-28T06:00:00Z"}},
		{"promoted for too long", promote("prod", ahead(7*day+time.Minute)),
			[]string{"metadata.annotations[omni.texashpc.com/promote-prod]: must be at most 7 days ahead: promote the stage again later"}},
	})
}

// checkRemedies is checkRules for errors whose texts are ours: each is "path: text".
func checkRemedies[T any](t *testing.T, valid func() *T, validate func(*T) field.ErrorList, rows []row[T]) {
	t.Helper()

	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			obj := valid()
			r.change(obj)

			var got []string
			for _, err := range validate(obj) {
				got = append(got, err.Field+": "+err.Detail)
			}

			if diff := cmp.Diff(r.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidateOmniRolloutPolicyUpdate(t *testing.T) {
	invalid := policySpec(func(s *v1alpha1.OmniRolloutPolicySpec) { s.MaxFailed = 101 })
	long := func(length int) func(*v1alpha1.OmniRolloutPolicy) {
		return policySpec(func(s *v1alpha1.OmniRolloutPolicySpec) { s.Stages[1].Name = strings.Repeat("b", length) })
	}
	rename := policySpec(func(s *v1alpha1.OmniRolloutPolicySpec) { s.Stages[1].Name = "rest" })

	checkUpdates(t, validPolicy, ValidateOmniRolloutPolicyUpdate, []updateRow[v1alpha1.OmniRolloutPolicy]{
		{name: "nothing changed"},
		{"everything changed", nil, func(p *v1alpha1.OmniRolloutPolicy) { p.Spec = validPolicy().Spec; stages(5)(p) }, nil},
		{"made invalid", nil, invalid, []string{"spec.maxFailed: Invalid value"}},
		{"stored under older rules", invalid, func(p *v1alpha1.OmniRolloutPolicy) { p.Labels = map[string]string{"a": "b"} }, nil},
		{"made invalid while being deleted", func(p *v1alpha1.OmniRolloutPolicy) { deleting(&p.ObjectMeta) }, invalid, nil},
		{"promoted", nil, promote("prod", ahead(time.Hour)), nil},
		{"promoted for too long", nil, promote("prod", ahead(8*day)), []string{"metadata.annotations[omni.texashpc.com/promote-prod]: Invalid value"}},
		{"a promotion that nobody changes", promote("prod", "2027-13-01"), func(p *v1alpha1.OmniRolloutPolicy) { p.Spec.Hold = true }, nil},
		{"a long name", nil, long(56), []string{"spec.stages[1].name: Invalid value"}},
		{"a long name that is there", long(63), func(p *v1alpha1.OmniRolloutPolicy) { p.Spec.Hold = true }, nil},
		{"a long name beside a new one", long(63), func(p *v1alpha1.OmniRolloutPolicy) { p.Spec.Stages[0].Name = strings.Repeat("c", 57) },
			[]string{"spec.stages[0].name: Invalid value"}},
		{"a promoted stage gets another name", promote("prod", ahead(time.Hour)), rename, nil},
		{"the stage and its promotion in one write", nil, func(p *v1alpha1.OmniRolloutPolicy) { rename(p); promote("rest", ahead(time.Hour))(p) }, nil},
		{"a promotion of a stage that is gone", promote("prod", ahead(time.Hour)), func(p *v1alpha1.OmniRolloutPolicy) { rename(p); promote("prod", ahead(2*time.Hour))(p) },
			[]string{"metadata.annotations[omni.texashpc.com/promote-prod]: Invalid value"}},
	})
}

func TestValidateOmniRolloutPolicyStatusUpdate(t *testing.T) {
	checkUpdates(t, validPolicy, ValidateOmniRolloutPolicyStatusUpdate, []updateRow[v1alpha1.OmniRolloutPolicy]{
		{"valid", nil, func(p *v1alpha1.OmniRolloutPolicy) {
			p.Status.ObservedGeneration = 3
			p.Status.Stages = []v1alpha1.RolloutStageStatus{{Name: "canary"}, {Name: "prod"}}
			p.Status.Admitted = []v1alpha1.RolloutTicket{{Cluster: "a"}, {Cluster: "b"}}
			p.Status.Failed = []v1alpha1.FailedCluster{{Cluster: "a"}, {Cluster: "c"}}
		}, nil},
		{"one key twice", nil, func(p *v1alpha1.OmniRolloutPolicy) {
			p.Status.Stages = []v1alpha1.RolloutStageStatus{{Name: "prod"}, {Name: "prod"}}
			p.Status.Admitted = []v1alpha1.RolloutTicket{{Cluster: "a"}, {Cluster: "a"}}
			p.Status.Failed = []v1alpha1.FailedCluster{{Cluster: "b"}, {Cluster: "a"}, {Cluster: "b"}}
		}, []string{
			"status.stages[1].name: Duplicate value", "status.admitted[1].cluster: Duplicate value", "status.failed[2].cluster: Duplicate value",
		}},
		{"a generation to come", nil, func(p *v1alpha1.OmniRolloutPolicy) { p.Status.ObservedGeneration = 4 }, []string{"status.observedGeneration: Invalid value"}},
	})
}

func TestWarningsForOmniRolloutPolicy(t *testing.T) {
	soon := v1alpha1.RolloutFreeze{Name: "soon", From: metav1.NewTime(time.Now().Add(30 * time.Minute)), Until: metav1.NewTime(time.Now().Add(day))}
	over := v1alpha1.RolloutFreeze{Name: "over", From: metav1.NewTime(time.Now().Add(-day)), Until: metav1.NewTime(time.Now().Add(-time.Minute))}
	present := v1alpha1.RolloutFreeze{Name: "now", From: metav1.NewTime(time.Now().Add(-day)), Until: metav1.NewTime(time.Now().Add(time.Minute))}

	for _, test := range []row[v1alpha1.OmniRolloutPolicy]{
		{"windows nowhere", stages(3), nil},
		{"windows in the last stage", nil, nil},
		{"windows in the first stage", func(p *v1alpha1.OmniRolloutPolicy) {
			p.Spec.Stages[0].Windows, p.Spec.Stages[1].Windows = p.Spec.Stages[1].Windows, nil
		}, []string{"spec.stages[1].windows: unset, so this stage begins at any time; an earlier one has windows"}},
		{"a promotion that is over, and one that is not", func(p *v1alpha1.OmniRolloutPolicy) {
			stages(1)(p)
			p.Annotations = map[string]string{
				v1alpha1.AnnotationPromotePrefix + "a": "2026-01-02T06:00:00+02:00",
				v1alpha1.AnnotationPromotePrefix + "b": time.Now().Add(time.Hour).Format(time.RFC3339),
				v1alpha1.AnnotationPromotePrefix + "c": "tomorrow",
			}
		}, []string{"metadata.annotations[" + v1alpha1.AnnotationPromotePrefix + "a]: is over since 2026-01-02T04:00:00Z and lets nothing begin"}},
		{"a freeze that is over", func(p *v1alpha1.OmniRolloutPolicy) { stages(1)(p); freezes(soon, over, present)(p) },
			[]string{"spec.freezes[1]: is over: it can be taken out"}},
		{"the default soak time, and a freeze in 30 minutes", freezes(over, soon), []string{
			"spec.freezes[0]: is over: it can be taken out", "spec.stages[0].soakTime: does not end before the next freeze",
		}},
		{"a short soak time", func(p *v1alpha1.OmniRolloutPolicy) { freezes(soon)(p); p.Spec.Stages[0].SoakTime = "29m" }, nil},
		{"a long one", func(p *v1alpha1.OmniRolloutPolicy) { freezes(soon)(p); p.Spec.Stages[0].SoakTime = "31m" },
			[]string{"spec.stages[0].soakTime: does not end before the next freeze"}},
		{"a long one in the last stage, for which nothing waits", func(p *v1alpha1.OmniRolloutPolicy) {
			freezes(soon)(p)
			p.Spec.Stages[0].SoakTime, p.Spec.Stages[1].SoakTime = "1s", "720h"
		}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			policy := validPolicy()
			if test.change != nil {
				test.change(policy)
			}

			checkWarnings(t, WarningsForOmniRolloutPolicy(policy), test.want)
		})
	}
}

// TestPoliciesOnPages: the examples on pages are valid. Their freezes will be over one day, so warnings do not count.
func TestPoliciesOnPages(t *testing.T) {
	for _, page := range []string{"docs/reference/omnirolloutpolicy.md", "docs/how-to/roll-out-versions.md"} {
		found := 0

		for _, text := range objectsOn(t, page) {
			if !strings.Contains(text, "kind: OmniRolloutPolicy\n") {
				continue
			}

			found++

			file := filepath.Join(t.TempDir(), "object.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}

			policy := load[*v1alpha1.OmniRolloutPolicy](t, filepath.Dir(file), "object.yaml")
			policy.Namespace = "omni"

			if errs := ValidateOmniRolloutPolicy(policy); len(errs) > 0 {
				t.Errorf("%s: %v", page, errs)
			}
		}

		if found == 0 {
			t.Errorf("%s has no example", page)
		}
	}
}
