// Package rollout decides when changes of clusters may begin, by an OmniRolloutPolicy. It is pure: it asks nobody, and
// knows no time but the one that it is given.
//
// Two controllers ask it. That of OmniRolloutPolicy has Evaluate look at all clusters of a policy: it says what the
// policy's status should be, and who gets a ticket. That of OmniCluster has Policy.Judge say what one cluster's changes
// wait for, by the status that the other has written, before it uses its ticket.
//
//	clusters -> Evaluate -> status.stages, status.admitted -> Judge -> may begin, or what it waits for
//
// Package stage knows stages and shares of them, package window times.
package rollout
