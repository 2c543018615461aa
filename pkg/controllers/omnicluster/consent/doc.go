// Package consent decides whether a change may be made, for the controller of OmniCluster. It is pure: it reads and
// writes nothing, and has no clock; the caller passes the time.
//
// Decide makes one list of items of a plan. Each item has the change, its state, and what it waits for. What may be
// destroyed, the hash to approve, status.plan, the events and the messages are filters over that list.
//
//	facts -> Decide -> items -> [Apply] -> After -> items
//
// Two further decisions come before a plan: to whom the cluster belongs (Claim), and the next step of a deletion
// (Deletion).
package consent
