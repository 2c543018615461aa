// Package limiter bounds how much is done at the same time, so that one thing
// outside that answers slowly cannot keep what all share.
//
// A Limiter turns away who finds no slot, and wakes it later: for runs of
// controllers, which must not keep a worker while they wait. A Grouped makes its
// callers wait: for work in goroutines of its own.
package limiter
