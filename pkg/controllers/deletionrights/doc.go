// Package deletionrights keeps the rights and the lease of a controller while the one namespace that it serves is being
// deleted.
//
// Both are in that namespace, and Kubernetes deletes everything there at once. Without them nobody could destroy the
// clusters, and the namespace would wait for ever. So a copy of the controller's RoleBinding and the Lease carry
// v1alpha1.InUseFinalizer while anything in the namespace has a finalizer of ours: a RoleBinding that is being deleted still
// counts, and a Lease that is being deleted can still be renewed.
//
// The RoleBinding itself gets no finalizer, because it belongs to the installation. An uninstallation that leaves objects in
// the storage would wait for the finalizer, and the next one would find a RoleBinding that is being deleted.
package deletionrights
