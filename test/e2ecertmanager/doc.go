// Package e2ecertmanager tests the chart together with cert-manager: its real controllers and cainjector issue the
// certificates of an installation by Helm, renew them, and write the authority into the APIService, while requests go
// through a real kube-apiserver to our real programs. What each step cost is counted.
//
// What stands in for the rest of a cluster: directories for volumes of Secrets, filled as kubelet fills them, and a Service
// that leads to loopback. Nothing else has a hand in it. Building cert-manager takes minutes the first time: the package is not
// part of "make test" but of "make e2e-certmanager".
package e2ecertmanager
