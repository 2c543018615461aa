// Package loop is the one reconcile loop of all controllers.
//
// A controller describes its kind as a Kind value: phases in order, how to
// make a scope, how to fill the status from it. The loop does the rest, the
// same way for every kind:
//
//	get -> finalizer -> phases in order -> status from the scope
//	    -> one status patch, if something changed -> event, if Ready changed
//
// Phases never touch conditions: each owns one condition type and says by its
// Outcome what the loop has to write there. No phase reads a condition that
// was written here; a run that finds the world unchanged writes nothing.
//
// Conditions follow kstatus: Ready always exists, Reconciling and Stalled exist
// only while they are true, and what stands behind a phase that does not
// continue is Unknown, reason Blocked.
package loop
