// Package embeddedetcd runs the etcd server that omni-apiserver stores its objects in when it was
// given a data directory.
//
// It is one member, reachable through a unix socket inside the data directory and through nothing
// else. Every acknowledged write was synced to disk. A lock file keeps a second process away from the
// directory. Old revisions are compacted by the API server's storage layer, as with any etcd.
package embeddedetcd
