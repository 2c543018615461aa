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
//
// A controller of all namespaces needs none of this, and takes the place of such controllers. Nobody but it would release what they
// kept, and the copy would give their rights to whoever gets an account of that name. So it releases both as soon as nobody renews the
// lease. It asks for them by name in each namespace in which an object has a finalizer of ours, at its start and when such an object
// comes or goes: there is no watch on all Leases and RoleBindings. A controller of one namespace that keeps nothing does the same when
// nothing there has a finalizer of ours.
package deletionrights
