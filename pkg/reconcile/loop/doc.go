// Package loop is the one reconcile loop of all controllers.
//
// A controller describes its kind as a Kind value: its phases in order, how to make a scope, how to fill the status
// from it. The loop does the rest in the same way for every kind:
//
//	get -> finalizer -> phases in order -> status from the scope
//	-> one status patch, if something changed -> event, if Ready changed
//
// Phases never write conditions: each owns one condition type, and its Outcome has what the loop writes there. No phase
// reads a condition that was written here; a run that finds nothing changed writes nothing.
//
// Conditions follow kstatus: Ready always exists, Reconciling and Stalled exist only while they are true, and the
// conditions of the phases after one that does not continue are Unknown, reason Blocked.
package loop
