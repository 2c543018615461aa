package loop

import (
	"context"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPolarity(t *testing.T) {
	for _, test := range []struct {
		name     string
		outcome  Outcome
		abnormal bool
		status   metav1.ConditionStatus
		runsNext bool
		ready    metav1.ConditionStatus
		reason   string // of Ready
	}{
		{"done", Continue("Fine", ""), false, metav1.ConditionTrue, true, metav1.ConditionTrue, "Fine"},
		{"nothing wrong", Continue("Fine", ""), true, metav1.ConditionFalse, true, metav1.ConditionTrue, "Fine"},
		{"shown only", Note("Failed", ""), false, metav1.ConditionFalse, true, metav1.ConditionTrue, "Failed"},
		{"wrong, shown only", Note("Wrong", ""), true, metav1.ConditionTrue, true, metav1.ConditionTrue, "Wrong"},
		{"not asked for", Skip("Off", ""), false, metav1.ConditionUnknown, true, metav1.ConditionTrue, "First"},
		{"not asked for, abnormal", Skip("Off", ""), true, metav1.ConditionUnknown, true, metav1.ConditionTrue, "First"},
		{"waits", Wait(0, "Later", ""), false, metav1.ConditionFalse, false, metav1.ConditionFalse, "Later"},
		{"wrong, waits", Wait(0, "Later", ""), true, metav1.ConditionTrue, false, metav1.ConditionFalse, "Later"},
		{"wrong, stalls", Stall("Never", ""), true, metav1.ConditionTrue, false, metav1.ConditionFalse, "Never"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var conditions []metav1.Condition

			writer := conditionWriter{conditions: &conditions, generation: 1}
			says := func(outcome Outcome) func(context.Context, int) (Outcome, error) {
				return func(context.Context, int) (Outcome, error) { return outcome, nil }
			}

			writer.summarize(runPhases(t.Context(), []Phase[int]{
				{Condition: "Before", Run: says(Continue("First", ""))},
				{Condition: "It", Abnormal: test.abnormal, Run: says(test.outcome)},
				{Condition: "After", Run: says(Skip("Off", ""))},
			}, 0, writer).last)

			for conditionType, want := range map[string]metav1.ConditionStatus{"Before": metav1.ConditionTrue, "It": test.status, "Ready": test.ready} {
				if got := apimeta.FindStatusCondition(conditions, conditionType); got == nil || got.Status != want {
					t.Errorf("%s: %+v, want %s", conditionType, got, want)
				}
			}

			if got := apimeta.FindStatusCondition(conditions, "Ready").Reason; got != test.reason {
				t.Errorf("Ready has reason %s, want %s", got, test.reason)
			}

			if got := apimeta.FindStatusCondition(conditions, "After").Reason; (got == "Off") != test.runsNext {
				t.Errorf("the next phase has reason %s", got)
			}
		})
	}
}
