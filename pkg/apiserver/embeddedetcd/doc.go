// Package embeddedetcd runs an etcd server inside omni-apiserver, which stores its objects there if it is given a
// data directory.
//
// The etcd is a single member, reachable only through a unix socket inside the data directory. Every acknowledged
// write was synced to disk. A lock file keeps a second process away from the directory. The API server's storage
// layer compacts old revisions, as with any etcd.
package embeddedetcd
