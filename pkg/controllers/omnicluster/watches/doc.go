// Package watches says which OmniClusters a change concerns. The controller of OmniCluster uses it for its watches:
// function Add in the package above lists them, and takes from here what each accepts and which clusters it enqueues.
//
// A Mapper finds the clusters by the indexes of package index. The predicates tell changes of the status, which are
// mostly the controller's own, from all others.
package watches
