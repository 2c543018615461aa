// Package omnirolloutpolicy is the controller of OmniRolloutPolicy: it reads the OmniClusters that a policy selects,
// and writes into the policy's status which of them may begin. Package rollout decides that. The controller changes
// nothing remote, and writes no object except the policy's own status.
package omnirolloutpolicy
