// Package observe reads what users are told: the status of a cluster, whether it runs
// as it is configured, how far its destruction is and what blocks it, and the cluster
// as a template for the command export. It only reads, from whichever state it is
// given: the local copy (Session.Copy) or Omni itself (Session.Live).
package observe
