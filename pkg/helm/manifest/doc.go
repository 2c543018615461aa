// Package manifest reads the YAML texts of a release and of a chart's CRDs: within which bounds, which objects they hold,
// and what is left of a file of CRDs without those that exist. It knows no cluster and no release. pkg/helm uses it for
// what a chart prints and for what a record says.
package manifest
