// Package plan decides what has to change in Omni, and makes the changes.
//
// Sync compares a template with a state, Delete plans the next step of a cluster's deletion; both only read. A Plan is
// a list of changes in the order in which Apply makes them, with a hash over the destructive ones. Apply is the one
// place that writes to Omni, except for RemoveMarks. It calls the caller's Consent for each destructive change, holds
// back what has no consent and what depends on it, and goes on past what Omni refuses.
//
// States are those of COSI: the local copy for planning, Omni itself for applying. Package session has both, and calls
// the mirror's Ready, Await and Expect.
package plan
