package env

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// loopbackNetwork is where everything of an environment listens. The controller connects to nothing there by default.
const loopbackNetwork = "127.0.0.0/8"

// defaultJoinSettleTime is the default of ControllerOptions.JoinSettleTime.
const defaultJoinSettleTime = 100 * time.Millisecond

// ControllerOptions says how to start omni-controller.
type ControllerOptions struct {
	// Binary is the program. Default: BuildBinaries.
	Binary string

	// Name tells several controllers of one hub apart. Default: omni-controller.
	Name string

	// Namespace is the one namespace to serve; it must exist. Exactly one of Namespace and
	// AllNamespaces is required.
	Namespace     string
	AllNamespaces bool

	// LeaderElection turns leader election on: several controllers may then serve one
	// namespace, and one of them works.
	LeaderElection bool

	// DestroySettleTime is how long a destructive change must be unchanged before it is
	// applied. Default: the program's own.
	DestroySettleTime time.Duration

	// JoinSettleTime is how long the documents of a cluster must be unchanged before a machine joins it. Default:
	// 100 ms, which is much less than the program's own: every new cluster of a test waits for it.
	JoinSettleTime time.Duration

	// MemoryLimit is what the program and those it starts may have together, in bytes, as the limit of its Pod; 0: no
	// limit. See CanLimitMemory.
	MemoryLimit uint64

	// Args are more flags; they can also replace those that StartController gives.
	Args []string
}

// Controller is a running omni-controller.
type Controller struct {
	*component

	metricsURL string
	healthURL  string
}

// StartController starts omni-controller with the rights that are deployed, bound in the
// namespaces it serves, and returns when its readiness check passes. The aggregated API has
// to be served before. The context bounds the start only.
func (h *Hub) StartController(ctx context.Context, options ControllerOptions) (*Controller, error) {
	if (options.Namespace == "") != options.AllNamespaces {
		return nil, errors.New("start controller: exactly one of Namespace and AllNamespaces is required")
	}

	if options.Name == "" {
		options.Name = controllerName
	}

	if h.process(options.Name) != nil {
		return nil, fmt.Errorf("start controller: %s was started before; use Restart, or another name", options.Name)
	}

	if options.Binary == "" {
		binaries, err := BuildBinaries(ctx, h.progress)
		if err != nil {
			return nil, err
		}

		options.Binary = binaries.OmniController
	}

	if err := h.grantController(ctx, options.Namespace); err != nil {
		return nil, err
	}

	c, err := h.newController(options)
	if err != nil {
		return nil, err
	}

	return c, c.launch(ctx)
}

func (h *Hub) newController(options ControllerOptions) (*Controller, error) {
	metrics, err := h.reservePort()
	if err != nil {
		return nil, err
	}

	health, err := h.reservePort()
	if err != nil {
		return nil, err
	}

	kubeconfig, err := h.serviceAccountKubeconfig(controllerName)
	if err != nil {
		return nil, err
	}

	args := []string{
		"--kubeconfig=" + kubeconfig,
		"--metrics-bind-address=" + metrics.address(),
		// On loopback, and read by tests and benchmarks without credentials.
		"--metrics-secure=false",
		"--health-probe-bind-address=" + health.address(),
		"--leader-elect=" + strconv.FormatBool(options.LeaderElection),
		"--allowed-networks=" + loopbackNetwork,
	}

	if options.AllNamespaces {
		args = append(args, "--all-namespaces")
	} else {
		args = append(args, "--namespace="+options.Namespace, "--role-binding="+controllerName)
	}

	args = append(args, "--join-settle-time="+cmp.Or(options.JoinSettleTime, defaultJoinSettleTime).String())

	if options.DestroySettleTime > 0 {
		args = append(args, "--destroy-settle-time="+options.DestroySettleTime.String())
	}

	c := &Controller{metricsURL: "http://" + metrics.address() + "/metrics", healthURL: "http://" + health.address()}
	c.component = &component{hub: h, ready: c.healthy, spec: processSpec{
		name:   options.Name,
		binary: options.Binary,
		args:   append(args, options.Args...),
		memory: options.MemoryLimit,
	}}

	return c, nil
}

// healthy returns nil when the controller's own readiness check passes.
func (c *Controller) healthy(ctx context.Context) error {
	_, err := httpGet(ctx, c.healthURL+"/readyz")

	return err
}

// Metrics returns the controller's metrics in the text format of Prometheus.
func (c *Controller) Metrics(ctx context.Context) (string, error) {
	return httpGet(ctx, c.metricsURL)
}

// httpGet returns the body of a 200 answer; any other is an error.
func httpGet(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", fmt.Errorf("get %s: %w", url, err)
	}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()

	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("get %s: %w", url, err)
	}

	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("get %s: %s: %s", url, response.Status, body)
	}

	return string(body), nil
}
