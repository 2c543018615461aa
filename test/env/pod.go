package env

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Pod is the Pod of a rendered workload, to be started on this machine: its volumes are directories, and its ports are
// free ones on loopback. Nothing else of it changes.
type Pod struct {
	// Workload is the name of the StatefulSet or Deployment.
	Workload string

	hub       *Hub
	template  corev1.PodTemplateSpec
	container corev1.Container
	dir       string
	ports     map[int32]int // port in the Pod to port here
}

// NewPod takes the Pod out of a StatefulSet or Deployment, with its volumes below dir.
func (h *Hub) NewPod(workload *unstructured.Unstructured, dir string) (*Pod, error) {
	p := &Pod{Workload: workload.GetName(), hub: h, dir: dir, ports: map[int32]int{}}

	raw, _, err := unstructured.NestedMap(workload.Object, "spec", "template")
	if err != nil {
		return nil, fmt.Errorf("read the Pod of %s: %w", p.Workload, err)
	}

	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(raw, &p.template, true); err != nil {
		return nil, fmt.Errorf("read the Pod of %s: %w", p.Workload, err)
	}

	if len(p.template.Spec.Containers) != 1 {
		return nil, fmt.Errorf("%s has %d containers, not one", p.Workload, len(p.template.Spec.Containers))
	}

	p.container = p.template.Spec.Containers[0]

	for _, port := range p.container.Ports {
		if p.ports[port.ContainerPort], err = h.FreePort(); err != nil {
			return nil, err
		}
	}

	for _, mount := range p.container.VolumeMounts {
		if err := os.MkdirAll(p.Volume(mount.Name), 0o700); err != nil {
			return nil, fmt.Errorf("make volume %s of %s: %w", mount.Name, p.Workload, err)
		}
	}

	return p, nil
}

// Volume is the directory that stands for a volume.
func (p *Pod) Volume(name string) string { return filepath.Join(p.dir, name) }

// Port is the port here for one of the container, and 0 if it has no such port.
func (p *Pod) Port(inside int32) int { return p.ports[inside] }

// Secrets returns the directories of the volumes that are made from Secrets, by the name of the Secret.
func (p *Pod) Secrets() map[string]string {
	result := map[string]string{}

	for _, volume := range p.template.Spec.Volumes {
		if volume.Secret != nil {
			result[volume.Secret.SecretName] = p.Volume(volume.Name)
		}
	}

	return result
}

// ConfigMaps is Secrets for ConfigMaps.
func (p *Pod) ConfigMaps() map[string]string {
	result := map[string]string{}

	for _, volume := range p.template.Spec.Volumes {
		if volume.ConfigMap != nil {
			result[volume.ConfigMap.Name] = p.Volume(volume.Name)
		}
	}

	return result
}

// ServiceAccount is the account that the Pod runs as.
func (p *Pod) ServiceAccount() string { return p.template.Spec.ServiceAccountName }

// Args are the container's arguments with the paths and ports of this machine.
func (p *Pod) Args() []string {
	mounts := slices.Clone(p.container.VolumeMounts)
	// The longest path first: one may be below another.
	slices.SortFunc(mounts, func(a, b corev1.VolumeMount) int { return len(b.MountPath) - len(a.MountPath) })

	args := slices.Clone(p.container.Args)
	for i, arg := range args {
		name, value, _ := strings.Cut(arg, "=")

		for _, mount := range mounts {
			if rest, below := strings.CutPrefix(value+"/", mount.MountPath+"/"); below {
				args[i] = name + "=" + filepath.Join(p.Volume(mount.Name), rest)

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
func (p *Pod) environment() []string {
	result := []string{"HOME=/nonexistent", "TMPDIR=" + p.Volume("tmp")}
	for _, variable := range p.container.Env {
		result = append(result, variable.Name+"="+variable.Value)
	}

	return result
}

// Start runs the container's command and waits until its startup and readiness probes pass, and then its liveness probe.
// The kubeconfig stands for the mounted token of the service account.
func (p *Pod) Start(ctx context.Context, binaries Binaries, kubeconfig string) (*Program, error) {
	programs := map[string]string{"/omni-apiserver": binaries.OmniAPIServer, "/omni-controller": binaries.OmniController}

	binary, ok := programs[strings.Join(p.container.Command, " ")]
	if !ok {
		return nil, fmt.Errorf("%s runs %v, which the image does not have", p.Workload, p.container.Command)
	}

	args := append(p.Args(), "--kubeconfig="+kubeconfig)
	if binary == binaries.OmniController {
		args = append(args, "--allowed-networks="+loopbackNetwork) // the simulated Omni is on this machine
	}

	program, err := p.hub.StartProgram(ctx, ProgramOptions{
		Name:   p.Workload,
		Binary: binary,
		Args:   args,
		Env:    p.environment(),
		Ready: func(ctx context.Context) error {
			return errors.Join(p.probe(ctx, p.container.StartupProbe), p.probe(ctx, p.container.ReadinessProbe))
		},
	})
	if err != nil {
		return nil, err
	}

	return program, p.probe(ctx, p.container.LivenessProbe)
}

// probe asks as the kubelet does: without credentials, and any certificate will do.
func (p *Pod) probe(ctx context.Context, probe *corev1.Probe) error {
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
		fmt.Sprintf("%s://%s:%d%s", scheme, loopback, p.probePort(get.Port), get.Path), nil)
	if err != nil {
		return err
	}

	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()

	if body, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s%s answers %s: %s (%v)", p.Workload, get.Path, response.Status, body, err)
	}

	return nil
}

// probePort returns the port here for a number or a name in the Pod, and 0 if the container has no such port.
func (p *Pod) probePort(port intstr.IntOrString) int {
	for _, declared := range p.container.Ports {
		if port.Type == intstr.String && declared.Name == port.StrVal || port.Type == intstr.Int && declared.ContainerPort == port.IntVal {
			return p.ports[declared.ContainerPort]
		}
	}

	return 0
}
