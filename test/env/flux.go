package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// FluxNamespace is where Flux runs, and the only namespace from which its objects there may take a
// kubeconfig: Flux reads the Secret from the namespace of the object that names it.
const FluxNamespace = "flux-system"

// FluxOptions says how to start Flux.
type FluxOptions struct {
	// Components are the controllers to start, source-controller first. At least one is required.
	Components []FluxComponent

	// Args are more flags, by controller.
	Args map[FluxComponent][]string
}

// FluxProcess is a running controller of Flux.
type FluxProcess struct {
	*component

	metricsURL string
}

// Metrics returns the controller's metrics in the text format of Prometheus.
func (c *FluxProcess) Metrics(ctx context.Context) (string, error) {
	return httpGet(ctx, c.metricsURL)
}

// StartFlux installs Flux's custom resource definitions, makes its namespace and starts its
// controllers as plain processes, with the administrator's rights, which Flux has in a usual
// installation, too. It returns when their readiness checks pass. Flux serves all namespaces;
// Hub.Stop stops it. The context bounds the start only.
func (h *Hub) StartFlux(ctx context.Context, options FluxOptions) (map[FluxComponent]*FluxProcess, error) {
	if len(options.Components) == 0 {
		return nil, errors.New("start Flux: no components are named")
	}

	programs := make(map[FluxComponent]BuiltFlux, len(options.Components))

	// Every definition is there before the first controller looks for them.
	for _, name := range options.Components {
		program, err := EnsureFlux(ctx, h.progress, name)
		if err != nil {
			return nil, err
		}

		programs[name] = program

		// Server-side: the definitions are too large for kubectl's annotation.
		if _, _, err := h.Kubectl(ctx, "apply", "--server-side", "-f", program.Definitions); err != nil {
			return nil, fmt.Errorf("install definitions of %s: %w", name, err)
		}
	}

	if _, _, err := h.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"); err != nil {
		return nil, fmt.Errorf("wait for the definitions of Flux: %w", err)
	}

	if err := h.ensureNamespace(ctx, FluxNamespace); err != nil {
		return nil, err
	}

	running := make(map[FluxComponent]*FluxProcess, len(options.Components))

	for _, name := range options.Components {
		c, err := h.newFluxProcess(name, programs[name].Binary, options.Args[name])
		if err != nil {
			return nil, err
		}

		if err := c.launch(ctx); err != nil {
			return nil, err
		}

		running[name] = c
	}

	return running, nil
}

// newFluxProcess prepares one controller. All of them take the same basic flags.
func (h *Hub) newFluxProcess(name FluxComponent, binary string, more []string) (*FluxProcess, error) {
	ports := make([]*port, 3)

	var errs [3]error
	for i := range ports {
		ports[i], errs[i] = h.reservePort()
	}

	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}

	args := []string{
		"--metrics-addr=" + ports[0].address(),
		"--health-addr=" + ports[1].address(),
		"--enable-leader-election=false",
	}

	if name == FluxSourceController {
		artifacts := filepath.Join(h.Dir, "flux-artifacts")
		if err := os.MkdirAll(artifacts, 0o700); err != nil {
			return nil, fmt.Errorf("make directory of artifacts: %w", err)
		}

		args = append(args,
			"--storage-path="+artifacts,
			"--storage-addr="+ports[2].address(),
			"--storage-adv-addr="+ports[2].address(),
		)
	}

	health := "http://" + ports[1].address() + "/readyz"

	return &FluxProcess{
		metricsURL: "http://" + ports[0].address() + "/metrics",
		component: &component{
			hub: h,
			ready: func(ctx context.Context) error {
				_, err := httpGet(ctx, health)

				return err
			},
			spec: processSpec{
				name:    string(name),
				binary:  binary,
				foreign: true,
				args:    slices.Concat(args, more),
				env:     []string{"KUBECONFIG=" + h.KubeconfigPath, "RUNTIME_NAMESPACE=" + FluxNamespace},
			},
		},
	}, nil
}
