// Package dataversion handles the version number of the stored objects: it says how to read them.
//
// The number lies in etcd beside the objects, so that snapshots carry it. A program that finds a higher number than
// its own does not serve: it would treat data that it cannot read as damaged, or drop fields that it does not know
// with the next write. etcd's storage version is a different number: it is about the database format, not about the
// objects.
package dataversion
