// Package omnihelmrelease is the controller of OmniHelmRelease: it decides when
// a Helm release in a workload cluster is looked at, which action comes next,
// and what the user is told. How Helm does it is for pkg/helm.
//
// Actions take long, so none runs on a worker: runner.go runs them beside the
// reconciler, a few at once, and wakes the object when one has ended.
package omnihelmrelease
