package v1alpha1

import (
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Defaults of OmniRolloutPolicy.
const (
	// DefaultArrivalTime is how long a change other than a version is seen before a later stage takes it.
	DefaultArrivalTime Duration = "15m"
	// DefaultProgressDeadline is how long a cluster may take to be Ready with its changes.
	DefaultProgressDeadline Duration = "2h"
	// DefaultSoakTime is how long a stage runs a change before the next one takes it.
	DefaultSoakTime Duration = "1h"
)

// SetDefaults_OmniRolloutPolicySpec sets the times.
func SetDefaults_OmniRolloutPolicySpec(spec *OmniRolloutPolicySpec) {
	defaultTo(&spec.ArrivalTime, DefaultArrivalTime)
	defaultTo(&spec.ProgressDeadline, DefaultProgressDeadline)
}

// SetDefaults_RolloutStage sets what a stage asks for.
func SetDefaults_RolloutStage(stage *RolloutStage) {
	one := intstr.FromInt32(1)

	if stage.MaxConcurrent == nil {
		stage.MaxConcurrent = &one
	}

	if stage.MinQualified == nil {
		stage.MinQualified = &one
	}

	defaultTo(&stage.SoakTime, DefaultSoakTime)
	defaultTo(&stage.Promotion, PromotionAutomatic)
}
