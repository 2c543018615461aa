// Package upkeep maintains the database of the embedded etcd while it runs.
//
// The API server's storage layer compacts old revisions every few minutes. Their pages stay in the file as free
// space; when there is much of it, this package defragments the file. When the file reaches its quota, etcd raises an
// alarm and refuses writes until somebody frees space and clears the alarm. This package does both as soon as it is
// possible, and until then reports what is wrong.
package upkeep
