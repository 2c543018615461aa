package omnirolloutpolicy

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// report writes the result of a run into the status.
func (r *reconciler) report(_ context.Context, s *scope) {
	if s.result == nil {
		return
	}

	after := s.result.Status
	after.ReconcileStatus = s.policy.Status.ReconcileStatus // the loop's
	s.policy.Status = after
	r.measure(s)
}

// transient returns the conditions that exist only while they are true.
func (s *scope) transient() []loop.TransientCondition {
	if s.result == nil {
		return nil // what was found last stays
	}

	return []loop.TransientCondition{{
		Condition: v1alpha1.ConditionRolloutStopped, On: s.result.Stopped != "", Reason: v1alpha1.ReasonTooManyFailed, Message: s.result.Stopped,
	}}
}

// announce sends the events about what is new in the status, once it is stored.
func (r *reconciler) announce(before, after *v1alpha1.OmniRolloutPolicy) {
	tell := func(kind, reason, format string, args ...any) {
		r.events.Eventf(after, nil, kind, reason, "Rollout", format, args...)
	}

	was := apimeta.IsStatusConditionTrue(before.Status.Conditions, v1alpha1.ConditionRolloutStopped)
	stopped := apimeta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionRolloutStopped)

	switch {
	case stopped != nil && !was:
		tell(corev1.EventTypeWarning, "RolloutStopped", "nothing else begins: %s", stopped.Message)
	case stopped == nil && was:
		tell(corev1.EventTypeNormal, "RolloutResumed", "changes begin again")
	}

	for _, stage := range after.Status.Stages {
		old := stageOf(before.Status.Stages, stage.Name)

		var proved []string

		for _, version := range stage.Qualified {
			if !slices.Contains(old.Qualified, version) {
				proved = append(proved, nameOf(version))
			}
		}

		// One event: of several with one reason, the API keeps the text of the first.
		if len(proved) > 0 {
			tell(corev1.EventTypeNormal, "StageQualified", "stage %q has proved %s", stage.Name, strings.Join(proved, " and "))
		}

		if stage.PromotedUntil != nil && !stage.PromotedUntil.Equal(old.PromotedUntil) {
			tell(corev1.EventTypeNormal, "Promoted", "stage %q may begin without the earlier ones until %s", stage.Name, words.TimeWithZone(stage.PromotedUntil.UTC()))
		}
	}
}

func nameOf(version v1alpha1.QualifiedVersion) string {
	if version.Talos != "" {
		return "Talos " + version.Talos
	}

	return "Kubernetes " + version.Kubernetes
}

func stageOf(stages []v1alpha1.RolloutStageStatus, name string) v1alpha1.RolloutStageStatus {
	for _, stage := range stages {
		if stage.Name == name {
			return stage
		}
	}

	return v1alpha1.RolloutStageStatus{}
}

// measure updates the metrics of a policy.
func (r *reconciler) measure(s *scope) {
	measured := metrics.Rollout{Stages: map[string]metrics.RolloutStage{}, Stopped: s.result.Stopped != ""}

	for number, stage := range s.result.Status.Stages {
		one := metrics.RolloutStage{Clusters: map[string]int{
			"held": int(stage.Held), "admitted": int(stage.Admitted), "failed": int(stage.Failed),
		}}

		if !stage.Open && stage.NextChange != nil {
			one.Opens = stage.NextChange.Time
		}

		for _, member := range s.members {
			since := member.Rollout.HeldSince
			if !member.HasLeft && !member.Conflict && member.Stage == number && member.Rollout.State == v1alpha1.RolloutHeld && since != nil && (one.OldestHeld.IsZero() || since.Time.Before(one.OldestHeld)) {
				one.OldestHeld = since.Time
			}
		}

		measured.Stages[stage.Name] = one
	}

	r.options.Rollouts.Set(client.ObjectKeyFromObject(s.policy), measured)
}
