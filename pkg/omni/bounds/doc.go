// Package bounds limits how much an Omni may send, and how much of it we keep: limits with their defaults, the weight
// of a message before it is decoded, and the budget that all sessions of the process share.
//
// A weight is an estimate of the memory that a message takes once it is decoded, including its compressed content. All
// data from Omni is weighed first: package session weighs the answers of calls, package mirror the events of watches.
package bounds
