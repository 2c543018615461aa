// Package values reads the texts of valueFrom in an OmniCluster and its documents. The controller of OmniCluster uses it
// when it renders the template of a cluster.
//
// From reads them from ConfigMaps and Secrets, and refuses what would take much memory. MissingError and
// UnreadableError tell what is not there yet from what cannot be read now. Secrets keeps what came from a Secret, to
// remove it from the messages of Omni and of its rules.
package values
