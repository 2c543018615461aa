// Package embeddedetcd runs an etcd server inside omni-apiserver, which stores its objects there if it is given a
// data directory.
//
// The etcd is a single member, reachable only through a unix socket inside the data directory. Every acknowledged
// write was synced to disk. A lock file keeps a second process away from the directory. The API server's storage
// layer compacts old revisions, as with any etcd.
//
// Keeper maintains the database while it runs. The API server's storage layer compacts old revisions every few minutes. Their
// pages stay in the file as free space; when there is much of it, Keeper defragments the file. When the file reaches its quota,
// etcd raises an alarm and refuses writes until somebody frees space and clears the alarm. Keeper does both as soon as it is
// possible, and until then reports what is wrong.
package embeddedetcd
