// Package references is the admission plugin that lets nobody name a Secret or ConfigMap whom the
// management cluster would not let get it: the controller reads with its own rights, and so whoever may
// write our objects could use, and copy, what they may not see.
//
// It is off by default. A Pod can mount every Secret of its namespace as well, and GitOps controllers
// often may write objects without reading Secrets.
package references
