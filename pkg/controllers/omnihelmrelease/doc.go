// Package omnihelmrelease is the controller of OmniHelmRelease: it decides when a Helm release in a workload cluster is
// checked, which action comes next, and what the status says. Package helm carries the actions out.
//
// The phases of a run, each in the file of its name: which chart (chart) and which values (values); to whom the release
// belongs (ownership); the desired release (wanted), the next action and whether it may begin (release, depends,
// retry), and whether it is still wanted when it is about to change something (basis); the tests (test) and the live objects
// (drift); a deletion (delete); the status, events and errors (status, events, failure).
//
// Actions take long, so none runs on a worker: action.go prepares one, and runner.go runs it outside of the reconciler,
// a limited number at once, and triggers the object when it has ended. Calls that may take long are made in the same
// way, by package asynccache.
package omnihelmrelease
