// Package omnicluster is the controller of OmniCluster: it gathers the documents
// of a cluster, renders them into one Omni cluster template, plans against the
// local copy of Omni's state, applies, and says what Omni makes of it.
//
// Everything that could destroy something is decided by pure functions in files
// of their own: whose cluster it is (ownership.go), which part of a plan may be
// applied now (gate.go), what the user has approved (approval.go), what a
// deletion does (deletion_decide.go), and whether a set of destructive changes
// has settled (settle.go).
package omnicluster
