// Package snapshot takes copies of an etcd while it runs, looks into such copies, and keeps a
// directory of them up to date.
//
// A snapshot is the file that etcd's own tools make and read: the database at one revision, followed
// by its SHA-256 checksum. A file appears under its name only when it is whole and on disk, so that
// every file in a directory of snapshots is either good or was damaged later, which the checksum
// shows.
package snapshot
