// Package metrics holds what the controllers measure beside what
// controller-runtime measures by itself.
//
// kube-state-metrics cannot see aggregated kinds, so omni_resource_info and its
// neighbours are the only metrics that users have about their objects. The
// series of an object go when the object goes. No label and no value ever
// holds anything secret.
package metrics
