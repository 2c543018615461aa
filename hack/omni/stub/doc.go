// Command stub stands in for two services on the internet without which a real Omni accepts
// no cluster: the Talos Image Factory, which knows the Talos versions, their system extensions
// and the schematics, and the container registry whose kubelet tags are the Kubernetes
// versions. It is for "make test-omni" only, has no dependencies, and serves both on one
// loopback address.
package main
