// Package helm runs Helm releases in workload clusters. It and its packages
// below are the only importers of the Helm library.
//
// The way of a release is observe, decide, act:
//   - Client.Observe reads what Helm's storage in the workload cluster says, from
//     labels alone: an idle release costs one small list.
//   - Decide is a pure function from what is wanted and what was observed to the
//     next Decision. It needs no memory of its own.
//   - Client.Run does one action and blocks while it waits, so call it where that
//     holds up nobody. It reads a record once, and of the history only what Helm
//     looks into.
//
// What a revision was made from is written as labels on Helm's own record of it:
// the digest of chart, values and options, the attempt, the owner. So a restart,
// a lost status or a new kubeconfig causes no revision. A revision that a crash
// left pending is made again under its own number, but not while the process
// that began it may still be at it.
//
// Differences between the stored manifest and the cluster are found by
// Client.Drift with server-side dry runs.
//
// Errors of actions are *Error; they hold no value that came from a Secret.
//
// What needs no Client is in the packages below:
//   - charts finds and downloads charts, and render has them rendered in worker processes.
//   - values merges what a chart is rendered with.
//   - manifest bounds and reads what came of it.
//   - records reads and writes Helm's records within bounds.
//   - drift compares an object with what the cluster has.
//   - kubeclient is what stands between Helm and the cluster.
//   - live has the tests with a real kube-apiserver.
package helm
