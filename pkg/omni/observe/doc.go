// Package observe reads what is shown to users: the status of a cluster, whether it runs as configured, how far its
// deletion is and what blocks it, and the cluster as a template for the command export. It only reads, from the state
// that the caller passes: the local copy (Session.Copy) or Omni itself (Session.Live).
package observe
