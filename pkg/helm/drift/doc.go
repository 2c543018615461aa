// Package drift compares one object of a release with the workload cluster, and tells whether that object belongs to the
// release. pkg/helm uses it to find and correct drift (Client.Drift, Client.Correct), and after an uninstall to see that
// nothing is left. pkg/controllers/omnihelmrelease says which differences to ignore.
//
// It also bounds and reads YAML texts of objects: what a chart prints, its CRDs, and what Helm's records say.
package drift
