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
// Calendar says when a change may begin: in weekly windows of a time zone, and never during a freeze. Windows limit when something
// begins, not when it ends. The windows of one Calendar are joined: if one ends while another is open, the calendar stays open.
package rollout
