// Package omnihelmrelease is the controller of OmniHelmRelease: it decides when
// a Helm release in a workload cluster is looked at, which action comes next,
// and what the user is told. How Helm does it is for pkg/helm.
//
// The stations of a run, each in the file of its name: which chart (chart) and
// which values (values); whose release it is (ownership); what it should be (wanted),
// what comes next and whether it may begin (release, depends, retry); the tests
// (test) and the live objects (drift); a deletion (delete); what is told (status,
// events, failure).
//
// Actions take long, so none runs on a worker: action.go puts one together, and
// runner.go runs it beside the reconciler, a few at once, and wakes the object when
// it has ended. Questions are asked the same way, by
// package asynccache.
package omnihelmrelease
