// Command bench measures the operator on one machine, with real processes, in one run: etcd,
// kube-apiserver and kube-controller-manager, omni-apiserver behind the aggregator,
// omni-controller, and a simulated Omni in this process. "make bench" runs it; the page
// docs/development/benchmarks.md says what each figure means.
//
// It reports and never judges: each figure stands beside its aim, and a missed aim is no failure.
// Only a run that could not measure fails.
//
// The parts, a file each. Pure, with tests: settings.go (sizes), samples.go (percentiles),
// figures.go and report.go (tables), crd.go (a CRD out of our OpenAPI document), auditlog.go (who
// wrote what), proc.go (memory and CPU time of a process), objects.go (manifests). With processes:
// bench.go (the stack), verbs.go and rounds.go (our API against a CRD), latency.go, fleet.go, idle.go,
// restart.go, memory.go, profiles.go, rollout.go, storm.go, and for Helm releases next to Flux releases.go (the run),
// releases_effort.go, releases_sides.go, releases_watch.go, with releases_objects.go and
// releases_figures.go, which are pure.
//
// Plots: plots.go (which figures they show) and draw.go (how they look).
package main
