// Package metrics has what the controllers measure besides controller-runtime's own metrics.
//
// kube-state-metrics cannot see aggregated kinds, so omni_resource_info and its neighbours are the only metrics that
// users have about their objects. The series of an object are removed with the object. No label and no value ever
// contains a secret.
package metrics
