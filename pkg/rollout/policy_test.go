package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

// A policy that was stored under other rules, or that names a time zone of another build, lets nothing begin: it is not taken for
// one without windows, shares or selectors.
func TestPolicyThatCannotBeUnderstood(t *testing.T) {
	nearly := &v1alpha1.ClusterSelector{MatchExpressions: []v1alpha1.ClusterSelectorRequirement{{Key: "tier", Operator: "Nearly", Values: []string{"a"}}}}
	window := func(zone, start, duration string) []v1alpha1.MaintenanceWindow {
		return []v1alpha1.MaintenanceWindow{{Days: []v1alpha1.Weekday{v1alpha1.Monday}, TimeZone: zone, Start: start, Duration: v1alpha1.Duration(duration)}}
	}

	for name, test := range map[string]struct {
		edit func(*v1alpha1.OmniRolloutPolicySpec)
		want string // begins the error; empty: it can be understood
	}{
		"as it is":       {func(*v1alpha1.OmniRolloutPolicySpec) {}, ""},
		"selector":       {func(s *v1alpha1.OmniRolloutPolicySpec) { s.ClusterSelector = nearly }, "spec.clusterSelector: "},
		"stage":          {func(s *v1alpha1.OmniRolloutPolicySpec) { s.Stages[1].ClusterSelector = nearly }, "spec.stages[1].clusterSelector: "},
		"window":         {func(s *v1alpha1.OmniRolloutPolicySpec) { s.Stages[1].Windows = window("UTC", "22:30", "2h") }, ""},
		"time zone":      {func(s *v1alpha1.OmniRolloutPolicySpec) { s.Stages[1].Windows = window("Mars/Base", "22:30", "2h") }, "spec.stages[1].windows: "},
		"start":          {func(s *v1alpha1.OmniRolloutPolicySpec) { s.Stages[0].Windows = window("UTC", "25:00", "2h") }, `spec.stages[0].windows: start "25:00"`},
		"duration":       {func(s *v1alpha1.OmniRolloutPolicySpec) { s.Stages[2].Windows = window("UTC", "22:30", "long") }, "spec.stages[2].windows: duration: "},
		"max concurrent": {func(s *v1alpha1.OmniRolloutPolicySpec) { s.Stages[2].MaxConcurrent = new(intstr.FromString("ten")) }, "spec.stages[2]: maxConcurrent: "},
		"min qualified":  {func(s *v1alpha1.OmniRolloutPolicySpec) { s.Stages[0].MinQualified = new(intstr.FromInt32(0)) }, "spec.stages[0]: minQualified: "},
	} {
		t.Run(name, func(t *testing.T) {
			policy, err := rollout.New(policyOf(func(p *v1alpha1.OmniRolloutPolicy) { test.edit(&p.Spec) }))
			if (err == nil) != (test.want == "") || (policy == nil) != (err != nil) || err != nil && !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v, %v", policy, err)
			}

			// Nobody knows which clusters it is for.
			if !policy.MaySelect(clusterOf()) {
				t.Error("it may not select a cluster")
			}
		})
	}
}

// A window begins at its minute.
func TestWindowOfAPolicy(t *testing.T) {
	policy := read(t, policyOf(func(p *v1alpha1.OmniRolloutPolicy) {
		p.Spec.Stages[0].Windows = []v1alpha1.MaintenanceWindow{{Days: []v1alpha1.Weekday{v1alpha1.Wednesday}, TimeZone: "UTC", Start: "12:30", Duration: "1h"}}
	}))

	for after, open := range map[time.Duration]bool{
		0: false, 30*time.Minute - time.Second: false, 30 * time.Minute: true, 90*time.Minute - time.Second: true, 90 * time.Minute: false,
	} {
		if got := policy.Evaluate(nil, noon.Add(after)).Status.Stages[0].Open; got != open {
			t.Errorf("%s after noon: %v", after, got)
		}
	}
}

func TestGates(t *testing.T) {
	all := read(t, policyOf())
	some := read(t, policyOf(func(p *v1alpha1.OmniRolloutPolicy) {
		p.Spec.Changes = []v1alpha1.ChangeKind{v1alpha1.ChangeTalosVersion}
	}))

	for kind, want := range map[v1alpha1.ChangeKind][2]bool{
		"": {false, false}, v1alpha1.ChangeTalosVersion: {true, true}, v1alpha1.ChangeKubernetesVersion: {true, false},
	} {
		if got := [2]bool{all.Gates(kind), some.Gates(kind)}; got != want {
			t.Errorf("%q: %v, want %v", kind, got, want)
		}
	}
}

// The status shows a promotion while it counts: not when it is over, too far ahead, or no time.
func TestPromotionIsShown(t *testing.T) {
	for name, test := range map[string]struct {
		until string
		want  *metav1.Time
	}{
		"none":          {"", nil},
		"for an hour":   {noon.Add(time.Hour).Format(time.RFC3339), seconds(noon.Add(time.Hour))},
		"over":          {noon.Format(time.RFC3339), nil},
		"too far ahead": {noon.Add(rollout.MaxPromotion + time.Hour).Format(time.RFC3339), nil},
		"no time":       {"tomorrow", nil},
	} {
		policy := read(t, policyOf(func(p *v1alpha1.OmniRolloutPolicy) {
			p.Annotations = map[string]string{v1alpha1.AnnotationPromotePrefix + "stage": test.until}
		}))

		stages := policy.Evaluate(nil, noon).Status.Stages
		if diff := cmp.Diff([]*metav1.Time{nil, test.want, nil}, []*metav1.Time{stages[0].PromotedUntil, stages[1].PromotedUntil, stages[2].PromotedUntil}); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestHoldsChanges(t *testing.T) {
	for name, test := range map[string]struct {
		status          *v1alpha1.OmniClusterRollout
		concerns, holds bool
	}{
		"no status": {nil, false, false},
		"nothing":   {&v1alpha1.OmniClusterRollout{Governed: true}, false, false},
		"held":      {&v1alpha1.OmniClusterRollout{State: v1alpha1.RolloutHeld, Changes: []string{"a"}}, true, true},
		"admitted":  {&v1alpha1.OmniClusterRollout{State: v1alpha1.RolloutAdmitted}, true, true},
		"failed":    {&v1alpha1.OmniClusterRollout{State: v1alpha1.RolloutFailed}, true, false},
		"suspended": {&v1alpha1.OmniClusterRollout{Changes: []string{"a"}}, true, true},
	} {
		if got := rollout.StillConcerns(test.status); got != test.concerns {
			t.Errorf("%s: still concerns: %v", name, got)
		}

		if got := rollout.HoldsChanges(test.status); got != test.holds {
			t.Errorf("%s: holds changes: %v", name, got)
		}
	}
}
