// Package child is the one controller of the three template documents: OmniControlPlane, OmniWorkers and OmniMachine.
//
// It never calls Omni and sets no finalizer. The status of a document follows from the document, its siblings and the
// status of its OmniCluster. So only one controller knows Omni, and a document can be deleted at any time.
package child
