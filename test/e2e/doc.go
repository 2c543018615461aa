// Package e2e tests what a user sees: kubectl against a real kube-apiserver, behind it
// omni-apiserver with its embedded etcd, omni-controller, and a simulated Omni that speaks the
// real wire protocol. All tests share one management cluster; each has a namespace and, where it
// breaks Omni, an Omni of its own.
package e2e
