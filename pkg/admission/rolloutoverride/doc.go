// Package rolloutoverride is the admission plugin for the annotation rollout-override, by which changes of an
// OmniCluster begin out of turn. It requires a permission of its own: a user who may edit clusters must not get round
// an OmniRolloutPolicy by that alone.
package rolloutoverride
