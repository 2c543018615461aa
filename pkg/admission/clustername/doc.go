// Package clustername is the admission plugin that keeps two OmniClusters of a namespace from claiming the same
// cluster in Omni.
//
// It is best effort: it reads a cache that may be milliseconds old, and allows everything while that cache fills. If
// two such OmniClusters get through, the controller stalls the younger one.
package clustername
