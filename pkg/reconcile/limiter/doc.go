// Package limiter bounds how many work with one thing at the same time (a connection
// to Omni, a workload cluster, a host of charts), or what they hold of one thing
// together (memory), so that one that answers slowly or takes much cannot keep what all
// share.
//
// A Limiter serves its callers in the order of their arrival, but for those that ask for
// more of a total than is free: smaller requests pass them. Acquire waits: for work in
// goroutines of its own. TryAcquire does not: runs of controllers must not keep a
// worker while they wait, so who finds no slot is woken later.
package limiter
