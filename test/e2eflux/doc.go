// Package e2eflux tests the operator together with Flux: the real source-, kustomize- and
// helm-controller run beside it on a management cluster, take manifests from a registry on
// loopback, apply our kinds there and other things to a workload cluster.
//
// Everything is in Flux's own namespace, because Flux reads a kubeconfig Secret only from there; so the
// tests run one after another, and each has an Omni and names of its own. Building Flux takes minutes the
// first time: the package is not part of "make test" but of "make e2e-flux".
package e2eflux
