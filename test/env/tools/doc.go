// Command tools builds what tests start, ahead of the tests, and prints the paths: a cold
// build takes longer than a test should. Progress goes to standard error.
//
//	go run ./test/env/tools         # kube-apiserver, kube-controller-manager, kubectl, etcd
//	go run ./test/env/tools operator    # omni-apiserver and omni-controller
//	go run ./test/env/tools omni    # the real Omni and its stub, for "make test-omni"
//	go run ./test/env/tools flux    # Flux's source-, kustomize- and helm-controller, for "make e2e-flux"
//	go run ./test/env/tools certmanager    # cert-manager's controllers and cainjector, for "make e2e-certmanager"
package main
