// Package helmlive holds the tests of package helm that need a real Kubernetes
// control plane. It is apart from the unit tests, which start no processes.
package helmlive
