// Package drift compares one object of a release with what the workload cluster has, and tells whose an object there is.
// pkg/helm uses it for all objects of a revision (Client.Drift and Client.Correct), and to see that those of a release
// are gone; pkg/controllers/omnihelmrelease says what to ignore, and tells of the differences.
package drift
