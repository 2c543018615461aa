// Package mirror keeps the local copy of one Omni: the few resource types that
// matter, of all clusters, kept current by one COSI watch each.
//
// Plans and statuses are read from the copy, so that an idle fleet costs Omni nothing.
// It is read-only, says which cluster a change concerns, and knows what it does not
// show yet: until our own writes are in it, Ready says ErrBehind for their cluster.
// A lost watch is opened again with growing pauses; Health says since when and why.
//
// Package session opens one for each connection.
package mirror
