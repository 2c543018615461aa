package omnirolloutpolicy

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
)

// Descriptor says what is special about OmniRolloutPolicies. The delete guard looks at the clusters.
func Descriptor(now func() time.Time, clusters kit.Clusters) *kit.Descriptor[*v1alpha1.OmniRolloutPolicy] {
	return &kit.Descriptor[*v1alpha1.OmniRolloutPolicy]{
		Kind:      "OmniRolloutPolicy",
		Plural:    "omnirolloutpolicies",
		Singular:  "omnirolloutpolicy",
		ShortName: "orp",
		New:       func() *v1alpha1.OmniRolloutPolicy { return &v1alpha1.OmniRolloutPolicy{} },
		NewList:   func() runtime.Object { return &v1alpha1.OmniRolloutPolicyList{} },
		Spec:      kit.PartOf(func(o *v1alpha1.OmniRolloutPolicy) *v1alpha1.OmniRolloutPolicySpec { return &o.Spec }),
		Status:    kit.PartOf(func(o *v1alpha1.OmniRolloutPolicy) *v1alpha1.OmniRolloutPolicyStatus { return &o.Status }),
		Validation: kit.Validation[*v1alpha1.OmniRolloutPolicy]{
			Create:       validation.ValidateOmniRolloutPolicy,
			Update:       validation.ValidateOmniRolloutPolicyUpdate,
			StatusUpdate: validation.ValidateOmniRolloutPolicyStatusUpdate,
		},
		Warnings: validation.WarningsForOmniRolloutPolicy,
		DeleteGuard: func(ctx context.Context, o *v1alpha1.OmniRolloutPolicy) error {
			return confirmDeletion(ctx, o, clusters)
		},
		Columns: columns(now),
	}
}

func columns(now func() time.Time) []kit.Column[*v1alpha1.OmniRolloutPolicy] {
	return []kit.Column[*v1alpha1.OmniRolloutPolicy]{
		kit.ReadyColumn[*v1alpha1.OmniRolloutPolicy](),
		{
			Name:        "Stages",
			Description: "The stages, in their order.",
			Cell:        func(o *v1alpha1.OmniRolloutPolicy) any { return stages(o.Spec.Stages) },
		},
		{
			Name:        "Held",
			Type:        "integer",
			Description: "Clusters with changes that wait.",
			Cell:        func(o *v1alpha1.OmniRolloutPolicy) any { return int64(o.Status.Held) },
		},
		{
			Name:        "Running",
			Type:        "integer",
			Description: "Clusters whose changes may begin, or are at work.",
			Cell:        func(o *v1alpha1.OmniRolloutPolicy) any { return int64(len(o.Status.Admitted)) },
		},
		{
			Name:        "Failed",
			Type:        "integer",
			Description: "Clusters that failed and are not well yet.",
			Cell:        func(o *v1alpha1.OmniRolloutPolicy) any { return int64(o.Status.FailedCount) },
		},
		{
			Name:        "Next",
			Description: "In how long a stage opens, closes, or has proved a version.",
			Cell:        func(o *v1alpha1.OmniRolloutPolicy) any { return kit.Until(next(o.Status.Stages), now()) },
		},
		kit.MessageColumn[*v1alpha1.OmniRolloutPolicy](),
	}
}

func stages(all []v1alpha1.RolloutStage) string {
	names := make([]string, 0, len(all))
	for _, one := range all {
		names = append(names, one.Name)
	}

	return kit.OrNone(strings.Join(names, ","))
}

// next is the first instant at which a stage opens, closes, or has proved a version.
func next(all []v1alpha1.RolloutStageStatus) *metav1.Time {
	var first *metav1.Time

	for _, one := range all {
		if one.NextChange != nil && (first == nil || one.NextChange.Before(first)) {
			first = one.NextChange
		}

		for _, version := range one.Soaking {
			if version.Until != nil && (first == nil || version.Until.Before(first)) {
				first = version.Until
			}
		}
	}

	return first
}
