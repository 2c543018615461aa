// Package dataversion is about the number that says how the stored objects are to be read.
//
// It lies in etcd beside the objects, so that snapshots carry it, too. A program that finds a higher
// number than its own does not serve: it would take what it cannot read for damaged, or drop what it
// does not know with the next write. etcd's own storage version is another one; it is about the
// database, not about what is in it.
package dataversion
