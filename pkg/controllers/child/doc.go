// Package child is the one controller of the three template documents:
// OmniControlPlane, OmniWorkers and OmniMachine.
//
// It never talks to Omni and sets no finalizer. What a document shows follows
// from the document, its siblings and the status of its OmniCluster, so that
// there is one place that knows Omni, and a document can go at any moment.
package child
