// Package manifest bounds and reads YAML texts of objects: what a chart prints, its CRDs, and what Helm's records say. It
// knows no cluster. pkg/helm and pkg/helm/records use it.
package manifest
