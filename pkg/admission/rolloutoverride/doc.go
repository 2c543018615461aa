// Package rolloutoverride is the admission plugin that lets only those have changes of an OmniCluster begin out of turn who
// may override it: whoever may edit clusters is not meant to get round an OmniRolloutPolicy.
package rolloutoverride
