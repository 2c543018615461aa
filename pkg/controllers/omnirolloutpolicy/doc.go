// Package omnirolloutpolicy is the controller of OmniRolloutPolicy: it looks at the OmniClusters that a policy selects, and
// writes into the policy's status who may begin. Package rollout decides; nothing remote is done here, and no object but
// the policy's own status is written.
package omnirolloutpolicy
