// Package clusteraccess is the access to workload clusters: it turns the kubeconfig in a
// Secret into connections that OmniSecretSync and OmniHelmRelease may use.
//
// Whoever may write a Secret in the controller's namespace writes kubeconfigs, so
// they are not trusted. kubeconfig.go rebuilds them from an allow-list and refuses
// what would run a program, read a file or skip the check of a certificate, before
// anything is sent. identity.go says which cluster answers, and decides whether it
// is the one that was meant. clusters.go keeps one Cluster per kubeconfig, with
// connections of its own; cluster.go probes it in the background, so that a dead
// cluster costs a worker a moment and not a timeout; silence.go does the same for one
// that answers and hangs on what it stores. slot.go bounds how many runs are in one
// cluster at the same time.
package clusteraccess
