// Package export reads live clusters from an Omni and makes manifests that take them over unchanged. `omni-controller
// export` runs it.
//
// pkg/omni reads the clusters, and template/manifests makes the objects. This package joins the two, and verifies
// each cluster's manifests before it returns them: it renders them as the controller would, and compares the result
// with Omni. Every difference beyond the ownership mark becomes a warning that names the resource, so that nothing is
// dropped silently which our kinds cannot express.
//
// It writes nothing to Omni and reads nothing from Kubernetes.
package export
