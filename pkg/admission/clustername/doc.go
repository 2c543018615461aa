// Package clustername is the admission plugin that keeps two OmniClusters of a namespace from claiming
// the same cluster in Omni.
//
// It is best effort: it asks a cache that may be milliseconds old, and says nothing while that cache
// fills. The controller stalls the younger of two that came through.
package clustername
