package deploy

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// pod is the rendered Pod of one workload, about to be started on this machine: its volumes are directories
// below dir, and its ports are free ones. Nothing else of it changes.
type pod struct {
	workload  string
	template  corev1.PodTemplateSpec
	container corev1.Container
	dir       string
	ports     map[int32]int // port in the Pod to port here
}

// newPod takes the Pod out of a StatefulSet or Deployment.
func newPod(t *testing.T, hub *env.Hub, workload *unstructured.Unstructured) *pod {
	t.Helper()

	p := &pod{workload: workload.GetName(), dir: t.TempDir(), ports: map[int32]int{}}

	raw, _, err := unstructured.NestedMap(workload.Object, "spec", "template")
	if err != nil {
		t.Fatal(err)
	}

	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(raw, &p.template, true); err != nil {
		t.Fatalf("%s: %v", p.workload, err)
	}

	if len(p.template.Spec.Containers) != 1 {
		t.Fatalf("%s has %d containers", p.workload, len(p.template.Spec.Containers))
	}

	p.container = p.template.Spec.Containers[0]

	for _, port := range p.container.Ports {
		if p.ports[port.ContainerPort], err = hub.FreePort(); err != nil {
			t.Fatal(err)
		}
	}

	for _, mount := range p.container.VolumeMounts {
		if err := os.MkdirAll(p.volume(mount.Name), 0o700); err != nil {
			t.Fatal(err)
		}
	}

	return p
}

// volume is the directory that stands for a volume.
func (p *pod) volume(name string) string { return filepath.Join(p.dir, name) }

// fill puts files into the volume that is made from the Secret or ConfigMap of that name.
func (p *pod) fill(t *testing.T, source string, files map[string]string) {
	t.Helper()

	for _, volume := range p.template.Spec.Volumes {
		if volume.Secret != nil && volume.Secret.SecretName == source || volume.ConfigMap != nil && volume.ConfigMap.Name == source {
			for name, content := range files {
				write(t, filepath.Join(p.volume(volume.Name), name), content)
			}

			return
		}
	}

	t.Fatalf("%s has no volume of %s", p.workload, source)
}

// args are the container's arguments with the paths and ports of this machine.
func (p *pod) args() []string {
	mounts := slices.Clone(p.container.VolumeMounts)
	// The longest path first: one may be below another.
	slices.SortFunc(mounts, func(a, b corev1.VolumeMount) int { return len(b.MountPath) - len(a.MountPath) })

	args := slices.Clone(p.container.Args)
	for i, arg := range args {
		name, value, _ := strings.Cut(arg, "=")

		for _, mount := range mounts {
			if rest, below := strings.CutPrefix(value+"/", mount.MountPath+"/"); below {
				args[i] = name + "=" + filepath.Join(p.volume(mount.Name), rest)

				break
			}
		}

		for inside, here := range p.ports {
			port := strconv.Itoa(int(inside))
			if value == port || value == ":"+port {
				args[i] = name + "=" + strings.TrimSuffix(value, port) + strconv.Itoa(here)
			}
		}
	}

	return args
}

// environment is the container's, and what stands for its root file system: there is no home, and /tmp is a volume.
func (p *pod) environment() []string {
	result := []string{"HOME=/nonexistent", "TMPDIR=" + p.volume("tmp")}
	for _, variable := range p.container.Env {
		result = append(result, variable.Name+"="+variable.Value)
	}

	return result
}

// start runs the container's command and waits until its startup and readiness probes pass. The kubeconfig stands for
// the mounted token of the service account.
func (p *pod) start(t *testing.T, hub *env.Hub, binaries env.Binaries) *env.Program {
	t.Helper()

	programs := map[string]string{"/omni-apiserver": binaries.OmniAPIServer, "/omni-controller": binaries.OmniController}

	binary, ok := programs[p.container.Command[0]]
	if !ok || len(p.container.Command) != 1 {
		t.Fatalf("%s runs %v, which the image does not have", p.workload, p.container.Command)
	}

	args := append(p.args(), "--kubeconfig="+tokenKubeconfig(t, hub, p.template.Spec.ServiceAccountName))
	if binary == binaries.OmniController {
		args = append(args, "--allowed-networks=127.0.0.0/8") // the simulated Omni is on this machine
	}

	program, err := hub.StartProgram(t.Context(), env.ProgramOptions{
		Name:   p.workload,
		Binary: binary,
		Args:   args,
		Env:    p.environment(),
		Ready: func(ctx context.Context) error {
			if err := p.probe(ctx, p.container.StartupProbe); err != nil {
				return err
			}

			return p.probe(ctx, p.container.ReadinessProbe)
		},
	})
	if err != nil {
		t.Fatal(err)
	}

	if err := p.probe(t.Context(), p.container.LivenessProbe); err != nil {
		t.Error(err)
	}

	return program
}

// probe asks as the kubelet does: without credentials, and any certificate will do.
func (p *pod) probe(ctx context.Context, probe *corev1.Probe) error {
	get := probe.HTTPGet
	scheme := strings.ToLower(string(get.Scheme))

	if scheme == "" {
		scheme = "http"
	}

	client := http.Client{
		Timeout:   30 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		fmt.Sprintf("%s://127.0.0.1:%d%s", scheme, p.port(get.Port), get.Path), nil)
	if err != nil {
		return err
	}

	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()

	if body, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s%s answers %s: %s (%v)", p.workload, get.Path, response.Status, body, err)
	}

	return nil
}

// port returns the port here for a number or a name in the Pod, and 0 if the container has no such port.
func (p *pod) port(port intstr.IntOrString) int {
	for _, declared := range p.container.Ports {
		if port.Type == intstr.String && declared.Name == port.StrVal || port.Type == intstr.Int && declared.ContainerPort == port.IntVal {
			return p.ports[declared.ContainerPort]
		}
	}

	return 0
}
