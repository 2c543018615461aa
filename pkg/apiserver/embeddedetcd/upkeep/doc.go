// Package upkeep looks after the database of the embedded etcd while it runs.
//
// Old revisions are compacted by the API server's storage layer every few minutes; their pages stay in
// the file as free space, which this package gives back by a defragmentation when there is much of it.
// When the file reaches its quota, etcd raises an alarm and refuses writes until somebody makes room
// and takes the alarm back: this package does both as soon as it is possible, and until then says what
// is wrong.
package upkeep
