package rollout_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

// The rules of Judge in their order. Each line changes the policy or the cluster so that its reason is the verdict,
// even if all lines below it apply as well.
var lines = []struct {
	reason string
	policy func(*v1alpha1.OmniRolloutPolicy)
	member func(*rollout.Member)
}{
	{reason: v1alpha1.ReasonPolicyNotReady, policy: func(p *v1alpha1.OmniRolloutPolicy) { p.Generation++ }},
	{reason: v1alpha1.ReasonPolicyNotReady, policy: func(p *v1alpha1.OmniRolloutPolicy) {
		p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Message: "the clock is wrong"}}
	}},
	{reason: v1alpha1.ReasonPolicyOnHold, policy: func(p *v1alpha1.OmniRolloutPolicy) { p.Spec.Hold = true }},
	{reason: v1alpha1.ReasonFrozen, policy: func(p *v1alpha1.OmniRolloutPolicy) {
		p.Spec.Freezes = []v1alpha1.RolloutFreeze{{Name: "sale", From: *seconds(noon.Add(-time.Hour)), Until: *seconds(noon.Add(time.Hour))}}
	}},
	{reason: v1alpha1.ReasonClusterNotReady, member: dead},
	{reason: v1alpha1.ReasonRolloutStopped, policy: func(p *v1alpha1.OmniRolloutPolicy) { p.Status.FailedCount = 1 }},
	{reason: v1alpha1.ReasonAwaitingPromotion, policy: func(p *v1alpha1.OmniRolloutPolicy) {
		p.Spec.Stages[2].Promotion = v1alpha1.PromotionManual
	}},
	{reason: v1alpha1.ReasonWaitingForStage, policy: func(p *v1alpha1.OmniRolloutPolicy) { p.Status.Stages = nil }},
	{reason: v1alpha1.ReasonOutsideWindow, policy: func(p *v1alpha1.OmniRolloutPolicy) {
		p.Spec.Stages[2].Windows = []v1alpha1.MaintenanceWindow{{Days: []v1alpha1.Weekday{v1alpha1.Saturday}, Start: "02:00", Duration: "4h", TimeZone: "UTC"}}
	}},
}

// TestJudgeOrder combines every line with every set of the lines below it.
func TestJudgeOrder(t *testing.T) {
	for below := range 1 << len(lines) {
		object, member := policyOf(proved(v2, "canary", "stage")), memberOf("c", 2, wants(v2))
		first := ""

		for i := range slices.Backward(lines) {
			if below&(1<<i) == 0 {
				continue
			}

			first = lines[i].reason

			if lines[i].policy != nil {
				lines[i].policy(object)
			}

			if lines[i].member != nil {
				lines[i].member(&member)
			}
		}

		if got := read(t, object).Judge(member, noon).Reason; got != first {
			t.Errorf("lines %09b: %q, want %q", below, got, first)
		}
	}
}

func TestJudge(t *testing.T) {
	promoted := func(until time.Time) func(*v1alpha1.OmniRolloutPolicy) {
		return func(p *v1alpha1.OmniRolloutPolicy) {
			p.Annotations = map[string]string{v1alpha1.AnnotationPromotePrefix + "prod": until.Format(time.RFC3339)}
		}
	}
	manual := func(p *v1alpha1.OmniRolloutPolicy) { p.Spec.Stages[2].Promotion = v1alpha1.PromotionManual }
	stopped := func(p *v1alpha1.OmniRolloutPolicy) { p.Status.FailedCount = 1 }
	line := func(index int) func(*v1alpha1.OmniRolloutPolicy) { return lines[index].policy }

	for name, test := range map[string]struct {
		policy []func(*v1alpha1.OmniRolloutPolicy)
		member []func(*rollout.Member)
		want   string
	}{
		"proved by both":                     {policy: list(proved(v2, "canary", "stage"))},
		"proved by the first alone":          {policy: list(proved(v2, "canary")), want: v1alpha1.ReasonWaitingForStage},
		"proved by the second alone":         {policy: list(proved(v2, "stage")), want: v1alpha1.ReasonWaitingForStage},
		"a newer version is proved":          {policy: list(proved(v3, "canary", "stage")), want: v1alpha1.ReasonWaitingForStage},
		"promoted":                           {policy: list(promoted(noon.Add(time.Minute)))},
		"promoted for seven days":            {policy: list(promoted(noon.Add(7 * 24 * time.Hour)))},
		"promoted for eight days":            {policy: list(promoted(noon.Add(8 * 24 * time.Hour))), want: v1alpha1.ReasonWaitingForStage},
		"promoted until now":                 {policy: list(promoted(noon)), want: v1alpha1.ReasonWaitingForStage},
		"manual and promoted":                {policy: list(manual, promoted(noon.Add(time.Hour)))},
		"manual, promotion over":             {policy: list(manual, promoted(noon.Add(-time.Hour))), want: v1alpha1.ReasonAwaitingPromotion},
		"manual, eight days":                 {policy: list(manual, promoted(noon.Add(8*24*time.Hour))), want: v1alpha1.ReasonAwaitingPromotion},
		"manual and proved":                  {policy: list(manual, proved(v2, "canary", "stage")), want: v1alpha1.ReasonAwaitingPromotion},
		"promoted, but the window is closed": {policy: list(promoted(noon.Add(time.Hour)), line(8)), want: v1alpha1.ReasonOutsideWindow},
		"promoted, but frozen":               {policy: list(promoted(noon.Add(time.Hour)), line(3)), want: v1alpha1.ReasonFrozen},
		"promoted, but stopped":              {policy: list(promoted(noon.Add(time.Hour)), stopped), want: v1alpha1.ReasonRolloutStopped},
		"as many failed as may": {
			policy: list(proved(v2, "canary", "stage"), stopped, spec(func(s *v1alpha1.OmniRolloutPolicySpec) { s.MaxFailed = 1 })),
		},
		"the fix, though not Ready and stopped": {policy: list(proved(v2, "canary", "stage"), stopped), member: []func(*rollout.Member){failed("hash-v1.36.0")}},
		"the fix, though no stage proved it":    {policy: list(stopped), member: []func(*rollout.Member){failed("other")}},
		"the fix waits for a manual promotion":  {policy: list(stopped, manual), member: []func(*rollout.Member){failed("other")}, want: v1alpha1.ReasonAwaitingPromotion},
		"the fix waits for its window":          {policy: list(proved(v2, "canary", "stage"), stopped, line(8)), member: []func(*rollout.Member){failed("other")}, want: v1alpha1.ReasonOutsideWindow},
		"the fix waits for a freeze":            {policy: list(proved(v2, "canary", "stage"), stopped, line(3)), member: []func(*rollout.Member){failed("other")}, want: v1alpha1.ReasonFrozen},
		"what failed is not begun again":        {policy: list(proved(v2, "canary", "stage")), member: []func(*rollout.Member){failed("hash-" + v2)}, want: v1alpha1.ReasonRolloutFailed},
		"nor what was left of it": {policy: list(proved(v2, "canary", "stage")), member: []func(*rollout.Member){failed("other"), func(m *rollout.Member) {
			m.Rollout.Failure.Left = m.Rollout.Hash
		}}, want: v1alpha1.ReasonRolloutFailed},
		"no stage": {member: []func(*rollout.Member){func(m *rollout.Member) { m.Stage = -1 }}, want: v1alpha1.ReasonPolicyNotReady},
		"both versions, one proved": {policy: list(proved(v2, "canary", "stage")), member: []func(*rollout.Member){func(m *rollout.Member) {
			m.Rollout.Kinds, m.WantedTalos = append(m.Rollout.Kinds, v1alpha1.ChangeTalosVersion), "v1.14.0"
		}}, want: v1alpha1.ReasonWaitingForStage},
		"a version and a patch, the stages not quiet": {policy: list(proved(v2, "canary", "stage")), member: []func(*rollout.Member){func(m *rollout.Member) {
			m.Rollout.Kinds = append(m.Rollout.Kinds, v1alpha1.ChangeMachineConfig)
		}}, want: v1alpha1.ReasonWaitingForStage},
		"the first stage waits for none": {member: []func(*rollout.Member){func(m *rollout.Member) { m.Stage = 0 }}},
	} {
		t.Run(name, func(t *testing.T) {
			member := memberOf("c", 2, append([]func(*rollout.Member){wants(v2)}, test.member...)...)
			if got := read(t, policyOf(test.policy...)).Judge(member, noon); got.Reason != test.want {
				t.Errorf("got %q (%s), want %q", got.Reason, got.Message, test.want)
			}
		})
	}
}

func list[T any](items ...T) []T { return items }
