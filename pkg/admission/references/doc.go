// Package references is the admission plugin that refuses an object that names a Secret or ConfigMap which the user
// may not get. The controller reads with its own rights: without the plugin, a user who may write our objects could
// use, and copy, Secrets that the user may not read.
//
// It is off by default. A Pod can mount every Secret of its namespace as well, and GitOps controllers often may write
// objects without reading Secrets.
package references
