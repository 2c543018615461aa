// Package omnirolloutpolicy describes how the API server serves OmniRolloutPolicies.
package omnirolloutpolicy
