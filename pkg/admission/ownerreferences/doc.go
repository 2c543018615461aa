// Package ownerreferences is the admission plugin for metadata.ownerReferences. The garbage collector deletes an object whose
// owners are gone, so a user who may change objects must not get round the right to delete them by writing a reference.
package ownerreferences
