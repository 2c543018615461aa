// Package limiter bounds how many callers work with one thing at the same time (a connection to Omni, a workload
// cluster, a host of charts), or how much of one thing they hold together (memory), so that one slow or large user
// cannot occupy what all share.
//
// A Limiter serves its callers in the order of their arrival, those of AcquireFirst before all others; smaller requests pass
// those that need more of a total than is free. Acquire waits; it is for goroutines of their own. TryAcquire and Claim do not wait, because runs of
// controllers must not occupy a worker meanwhile: a caller without a slot is woken later. One of Claim then has its slot; of TryAcquire as many
// are woken as may fit, for slots that are held shortly.
//
// The package also has the pauses before a failed operation is tried again (Backoff).
package limiter
