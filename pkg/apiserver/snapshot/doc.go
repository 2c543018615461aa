// Package snapshot takes snapshots of a running etcd, inspects snapshots, and maintains a directory of scheduled
// ones.
//
// A snapshot is the file that etcd's own tools write and read: the database at one revision, followed by its SHA-256
// checksum. A file gets its name only when it is complete and synced to disk. So every file in a directory of
// snapshots is either good or was damaged later, which the checksum shows.
package snapshot
