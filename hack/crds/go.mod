// Custom resource definitions of others, with which test/deploy checks what the chart makes for cert-manager and for
// the Prometheus operator. A module of its own, which imports nothing: only files in the sources are read, so that
// `go mod tidy` has nothing to say here. v0.85.0 is the newest prometheus-operator that the module proxy has.
module omni.texashpc.com/omni-cluster-operator/hack/crds

go 1.26.0

require (
	github.com/cert-manager/cert-manager v1.21.2
	github.com/prometheus-operator/prometheus-operator v0.85.0
)
