// Package omnicluster is the controller of OmniCluster: it gathers the documents
// of a cluster, renders them into one Omni cluster template, plans against the
// local copy of Omni's state, applies, and says what Omni makes of it.
//
// Everything that could destroy something is decided by package consent: whose
// cluster it is, which part of a plan may be applied now, and what a deletion does.
// This package finds out the facts for it, and does what was decided.
package omnicluster
