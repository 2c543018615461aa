// Package drift compares one object of a release with the workload cluster, and tells whether that object belongs to the
// release. pkg/helm uses it to find and correct drift (Client.Drift, Client.Correct), and after an uninstall to see that
// nothing is left. pkg/controllers/omnihelmrelease says which differences to ignore.
package drift
