// Package bounds says how much an Omni may send, and how much is kept of it: limits
// with their defaults, the weight of a message before it is decoded, and the budget
// that all sessions of the process share.
//
// A weight is an estimate of the memory that a message takes once it is decoded, what
// it holds compressed included. Whoever reads from Omni weighs first: package session
// the answers of calls, package mirror the events of watches.
package bounds
