package main

import (
	"context"
	"errors"
	"path/filepath"

	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
	"omni.texashpc.com/omni-cluster-operator/test/env"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// workload is the Kubernetes behind cluster-01. The simulated Omni makes no machines, so this is a
// control plane of its own, without nodes.
type workload struct {
	started chan struct{} // closed when hub and err are final
	hub     *env.Hub
	err     error
}

// startWorkload starts it in the background: it takes seconds, and is needed late. The simulated
// Omni leads to it as soon as it runs.
func startWorkload(ctx context.Context, omni *omnisim.Server) *workload {
	w := &workload{started: make(chan struct{})}

	go func() {
		defer close(w.started)

		if w.hub, w.err = env.StartHub(ctx, env.Options{}); w.err != nil {
			return
		}

		cert, key := w.hub.FrontProxyClient()
		w.err = omni.AttachWorkload(exampleCluster, omnisim.Workload{URL: w.hub.URL(), CA: w.hub.CA(), ProxyCert: cert, ProxyKey: key})
	}()

	return w
}

// await waits until it runs, or could not be started.
func (w *workload) await(ctx context.Context) error {
	select {
	case <-w.started:
		return w.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stop waits for a start that is under way, and stops it.
func (w *workload) stop() error {
	<-w.started

	if w.hub == nil {
		return nil
	}

	return w.hub.Stop()
}

// variable is a shell variable that stands for a path.
type variable struct{ name, path string }

// admin is the kubeconfig of the administrator of cluster-01; the workload must run.
func (d *demo) admin() variable { return variable{"ADMIN", d.workload.hub.KubeconfigPath} }

// exported is where the demonstration puts the exported kubeconfig.
func (d *demo) exported() variable {
	return variable{"EXPORTED", filepath.Join(d.stack.Dir, "kubeconfigs", "exported")}
}

// standIn is what the chart repository serves in place of the chart of helm-release.yaml, which
// would want nodes for its pods. It understands the same values.
var standIn = chartserver.Chart{Name: "podinfo", Version: "6.9.2", Files: map[string]string{
	"values.yaml": "replicaCount: 1\nui: {message: \"\"}\n",
	"templates/configmap.yaml": `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  message: {{ .Values.ui.message | quote }}
  replicas: {{ .Values.replicaCount | quote }}
`,
}}

// startCharts starts the chart repository.
func startCharts() *chartserver.Repository {
	repository := chartserver.StartRepository()
	repository.Add(standIn)

	return repository
}

// writeRelease writes the example with the address of the chart repository.
func (d *demo) writeRelease() (string, error) {
	var unusable error

	path, err := d.adapt(releaseExample, "OmniHelmRelease", func(spec map[string]any) {
		chart, ok := spec["chart"].(map[string]any)
		if !ok {
			unusable = errors.New("helm-release.yaml has no spec.chart")

			return
		}

		chart["repository"] = d.charts.URL()
	})

	return path, errors.Join(unusable, err)
}
