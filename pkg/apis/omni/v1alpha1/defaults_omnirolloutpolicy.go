package v1alpha1

// Defaults of OmniRolloutPolicy.
const (
	// DefaultArrivalTime is how long a change other than a version is seen before a later stage takes it.
	DefaultArrivalTime Duration = "15m"
	// DefaultProgressDeadline is how long a cluster may take to be Ready with its changes.
	DefaultProgressDeadline Duration = "2h"
	// DefaultSoakTime is how long a stage runs a change before the next one takes it.
	DefaultSoakTime Duration = "1h"
)

// SetDefaults_OmniRolloutPolicySpec sets the times. Nothing is set in the stages, whose fields count as their defaults
// while they are unset: client-side apply patches the stages as one value, so a default in one of them would be a
// difference between the object in Git and the stored one each time.
func SetDefaults_OmniRolloutPolicySpec(spec *OmniRolloutPolicySpec) {
	defaultTo(&spec.ArrivalTime, DefaultArrivalTime)
	defaultTo(&spec.ProgressDeadline, DefaultProgressDeadline)
}
