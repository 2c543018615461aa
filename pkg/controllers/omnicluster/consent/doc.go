// Package consent decides whether a change may go ahead, for the controller of
// OmniCluster. It is pure: it reads and writes nothing, and knows no time but the
// one that it is given.
//
// Decide makes one list of items of a plan: each has the change, how far it has
// come, and what it waits for. What may be destroyed, the hash to approve,
// status.plan, the events and the messages are filters over that list.
//
//	facts -> Decide -> items -> [Apply] -> After -> items
//
// Beside it stand the two questions that come before a plan: whose cluster it is
// (Claim), and what a deletion does next (Deletion).
package consent
