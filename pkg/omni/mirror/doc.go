// Package mirror keeps the local copy of one Omni: the few resource types that plans and statuses need, of all
// clusters, kept current by one COSI watch each.
//
// Plans and statuses are read from the copy, so an idle fleet costs Omni nothing. The copy is read-only, and maps each
// change to the cluster it concerns. Until the copy shows our own writes, Ready returns ErrBehind for their cluster.
// The mirror opens a lost watch again with growing pauses; Health reports since when it is lost and why.
//
// Package session starts one mirror for each connection.
package mirror
