// Package asynccache makes calls that may take long (to a chart repository, a workload cluster, or Omni) outside of a
// controller's runs, and keeps the answers for a while, so that a run for another reason makes no call.
//
// golang.org/x/sync/singleflight is not enough: here an answer outlives its call, a call that no object needs any more
// is cancelled, and a run waits only once for a server that does not answer.
package asynccache
