// Package rollout decides by an OmniRolloutPolicy when changes of clusters may begin. It is pure: it does no I/O, and
// the caller passes the current time.
//
// Two controllers use it. The controller of OmniRolloutPolicies calls Evaluate with all clusters of a policy: the
// result is the policy's new status, with a ticket for each cluster whose changes may begin. The controller of
// OmniClusters calls Policy.Judge, which says what one cluster's changes wait for, by the status that the other
// controller has written. Only when Judge finds nothing does it use the cluster's ticket.
//
//	clusters -> Evaluate -> status.stages, status.admitted -> Judge -> may begin, or what it waits for
//
// Package stage assigns clusters to stages and computes shares of a stage; package window computes times.
package rollout
