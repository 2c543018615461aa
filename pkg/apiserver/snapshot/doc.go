// Package snapshot takes snapshots of a running etcd, inspects snapshots, and maintains a directory of scheduled
// ones.
//
// A snapshot is the file that etcd's own tools write and read: the database at one revision, followed by its SHA-256
// checksum. A file gets its name only when it is complete and synced to disk. So every file in a directory of
// snapshots is either good or was damaged later, which the checksum shows.
//
// The data version (DataVersion) says how to read the stored objects. It lies in etcd beside them, so that snapshots carry it. A
// program that finds a higher version than its own does not serve: it would treat data that it cannot read as damaged, or drop
// fields that it does not know with the next write. etcd's storage version is a different number: it is about the format of the
// database, not about the objects.
package snapshot
