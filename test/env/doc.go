// Package env starts real processes for tests, for "make demo" and for "make up": a
// management cluster (etcd, kube-apiserver, kube-controller-manager), kubectl, and this
// repository's own omni-apiserver and omni-controller, all on loopback ports that nobody
// else uses.
//
// Nothing but Go and the module proxy is needed. EnsureTools compiles the Kubernetes
// programs from the nested module hack/kube once and keeps them in the user's cache
// directory; BuildBinaries compiles this repository's commands on every call, which costs
// little when nothing changed.
//
// The usual order is
//
//	hub, err := env.StartHub(ctx, env.Options{WithoutControllerManager: true})
//	defer hub.Stop()
//	api, err := hub.StartOmniAPIServer(ctx, env.OmniAPIServerOptions{})
//	err = hub.StartControllerManager(ctx)
//	ctl, err := hub.StartController(ctx, env.ControllerOptions{Namespace: "default"})
//
// The controller manager comes after the aggregated API on purpose: its garbage collector
// and quota controller look for new kinds only about every 30 seconds.
//
// A hub without our programs is a workload cluster: WorkloadPool lends them to tests, and the
// simulated Omni forwards to them (URL, CA and FrontProxyClient are what it needs).
//
// Every child process has its own process group, so that Ctrl-C in a terminal reaches only
// the Go program, which then stops the children in the right order. On Linux the kernel
// kills the children if the Go program dies without doing so. The package needs a Unix
// system.
package env
