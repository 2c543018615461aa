// Package omnirolloutpolicy describes how the API server serves OmniRolloutPolicies.
package omnirolloutpolicy

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
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
		Suspended: func(o *v1alpha1.OmniRolloutPolicy) bool { return o.Spec.Hold },
		Columns:   columns(now),
	}
}

func columns(now func() time.Time) []kit.Column[*v1alpha1.OmniRolloutPolicy] {
	return []kit.Column[*v1alpha1.OmniRolloutPolicy]{
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

// confirmDeletion refuses to delete a policy that has changes of clusters wait or go on, unless its annotation
// confirm-deletion has its name. It asks the clusters as well: the number in the policy's status follows them by a
// second or more, in which a deletion would let all of them begin. While nobody leads, the clusters' statuses do not follow
// their specs either, so a spec that omni-controller has not seen counts as a change.
func confirmDeletion(ctx context.Context, o *v1alpha1.OmniRolloutPolicy, clusters kit.Clusters) error {
	if v1alpha1.IsDeletionConfirmed(o) {
		return nil
	}

	// The error is returned unwrapped: a wrapped "try again later" would become an internal server error.
	held, err := countHeld(ctx, o, clusters)
	if err != nil {
		return err
	}

	if held = max(held, int(o.Status.Held)); held == 0 {
		return nil
	}

	return apierrors.NewForbidden(v1alpha1.Resource("omnirolloutpolicies"), o.Name, fmt.Errorf(
		"it holds changes of %d clusters, has them at work, or will hold them once omni-controller has seen them; without it, all that wait "+
			"would begin at once: annotate it with %s=%s first if that is meant, or change its selector, which leaves them held", held, v1alpha1.AnnotationConfirmDeletion, o.Name))
}

// countHeld counts the clusters whose changes wait or are at work by a policy, or will wait. A cluster that makes no
// changes would begin with nothing.
func countHeld(ctx context.Context, policy *v1alpha1.OmniRolloutPolicy, clusters kit.Clusters) (int, error) {
	found, err := kit.ListClusters(ctx, clusters, &metainternalversion.ListOptions{})
	if err != nil {
		return 0, err
	}

	parsed, _ := rollout.New(policy) // nil if the policy was stored under other rules

	held := 0

	for i := range found {
		cluster := &found[i]
		if rollout.IsPaused(cluster) {
			continue
		}

		holds := rollout.HoldsChanges(cluster.Status.Rollout) && cluster.Status.Rollout.Policy == policy.Name
		if holds || (isUnseen(cluster) && parsed.MaySelect(cluster)) {
			held++
		}
	}

	return held, nil
}

// isUnseen reports whether omni-controller has not looked at the spec yet. A new cluster that it has never looked at waits
// for nothing, unless it is adopted.
func isUnseen(cluster *v1alpha1.OmniCluster) bool {
	isNew := cluster.Status.ObservedGeneration < 0 && !cluster.Spec.Adopt

	return cluster.Generation != cluster.Status.ObservedGeneration && !isNew
}
