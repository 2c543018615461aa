// Package controlplane is the admission plugin that warns of a second OmniControlPlane for one
// cluster. It does not refuse it: replacing a control plane by another object is a legitimate way to
// work, and the controller stalls the cluster as long as there are two.
package controlplane
