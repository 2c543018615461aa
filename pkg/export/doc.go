// Package export reads live clusters from an Omni and makes the manifests that take them over unchanged. It is
// what `omni-controller export` runs.
//
// Reading belongs to pkg/omni, the objects to template/manifests; this package joins them, and
// proves each cluster's manifests before it hands them out: they are rendered as the controller would render them
// and compared with Omni. What would change beyond the owner's mark becomes a warning that names the resource, so
// that nothing which our kinds cannot express is dropped silently.
//
// It writes nothing to Omni and reads nothing of Kubernetes.
package export
