package deploy

import (
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// pod is the rendered Pod of one workload, about to be started on this machine.
type pod struct{ *env.Pod }

// newPod takes the Pod out of a StatefulSet or Deployment.
func newPod(t *testing.T, hub *env.Hub, workload *unstructured.Unstructured) *pod {
	t.Helper()

	p, err := hub.NewPod(workload, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}

	return &pod{p}
}

// fill puts files into the volume that is made from the Secret or ConfigMap of that name.
func (p *pod) fill(t *testing.T, source string, files map[string]string) {
	t.Helper()

	for _, volumes := range []map[string]string{p.Secrets(), p.ConfigMaps()} {
		dir, ok := volumes[source]
		if !ok {
			continue
		}

		for name, content := range files {
			write(t, filepath.Join(dir, name), content)
		}

		return
	}

	t.Fatalf("%s has no volume of %s", p.Workload, source)
}

// fillIssued fills the volumes of the Secrets that cert-manager makes.
func (p *pod) fillIssued(t *testing.T, secrets map[string]map[string]string) {
	t.Helper()

	for name := range p.Secrets() {
		if files := secrets[name]; files != nil {
			p.fill(t, name, files)
		}
	}
}

// start runs the container's command and waits until its probes pass.
func (p *pod) start(t *testing.T, hub *env.Hub, binaries env.Binaries) *env.Program {
	t.Helper()

	program, err := p.Start(t.Context(), binaries, tokenKubeconfig(t, hub, p.ServiceAccount()))
	if err != nil {
		t.Fatal(err)
	}

	return program
}
