// Package chartserver serves Helm charts on loopback for tests and for the
// demonstration: a chart repository over HTTP and an OCI registry, both real
// servers that the real client code talks to, with what a test wants to see and
// to break: counted requests, credentials, faults.
package chartserver
