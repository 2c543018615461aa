// Package export reads live clusters from an Omni and makes manifests that take them over unchanged. `omni-controller
// export` runs it.
//
// pkg/omni reads the clusters, and template/manifests makes the objects. This package joins the two, and verifies
// each cluster's manifests before it returns them: it renders them as the controller would, and compares the result
// with Omni. Every difference beyond the ownership mark becomes a warning that names the resource, so that nothing is
// dropped silently which our kinds cannot express.
//
// It writes nothing to Omni and reads nothing from Kubernetes.
//
// FromTemplate is the way back of package template: it turns an Omni cluster template into the objects that render to it. What it
// makes renders to a template that Omni cannot tell from the first one. A content (a patch, a group of Kubernetes manifests)
// becomes an inline block if rendering that block gives back the same bytes, and if every tool on the way to the API keeps it as
// it is. Omni compares contents byte for byte, so everything else (comments, another indentation, a fraction, null) goes into a
// ConfigMap and is read through valueFrom, which changes nothing.
package export
