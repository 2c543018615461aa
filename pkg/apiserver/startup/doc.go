// Package startup waits for the servers that omni-apiserver cannot work without: the hub's kube-apiserver, with the
// rights that this server needs there, and an external etcd. It logs what is missing as long as it waits. On a hub
// that does not serve mutating admission policies, WaitForHub switches them off.
//
// It also connects to an etcd (ConnectEtcd), for the commands that take snapshots as well.
//
// cmd/apiserver is the only user, before it makes the server of pkg/apiserver.
package startup
