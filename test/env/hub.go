package env

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Options says how to start a hub. The zero value is usable.
type Options struct {
	// Tools are the Kubernetes programs. Default: EnsureTools.
	Tools *Tools

	// Dir keeps credentials, data and logs; Stop leaves it alone. Default: a new temporary
	// directory that Stop removes.
	Dir string

	// Progress gets a line now and then while programs are built. Default: nowhere.
	Progress io.Writer

	// WithoutControllerManager leaves kube-controller-manager out; see
	// Hub.StartControllerManager. Without it nothing collects garbage or empties
	// namespaces, and namespaces have no default service account.
	WithoutControllerManager bool

	// DurableEtcd lets the hub's etcd sync each write to disk, as a real one does and as
	// omni-apiserver's always does. A measurement that compares the two needs it; tests do not.
	DurableEtcd bool

	// AsDeployed lets the Kubernetes programs collect garbage as often as elsewhere, and kube-controller-manager run all of
	// its controllers. A measurement needs it; tests do not.
	AsDeployed bool

	// KubeAPIServerArgs are more flags for kube-apiserver, for example to turn audit on.
	KubeAPIServerArgs []string
}

// Hub is a running management cluster (or any other cluster: it has no nodes, so pods stay
// Pending, but everything else is real). Its methods may be called from several goroutines,
// those that start and stop processes one at a time.
type Hub struct {
	// Dir holds credentials, data and, in logs/, a log file per process.
	Dir string

	// KubeconfigPath is the administrator's kubeconfig.
	KubeconfigPath string

	tools      Tools
	progress   io.Writer
	ownsDir    bool
	asDeployed bool
	creds      *credentials
	etcdURL    string
	server     string // https://127.0.0.1:port of kube-apiserver
	client     kubernetes.Interface
	mu         sync.Mutex
	processes  []*process // in the order of their start
	ports      []*port
	fronts     []*Front
	users      int // kubeconfig files made so far, for their names
}

// StartHub starts etcd, kube-apiserver and kube-controller-manager, and returns when all
// work: about three seconds once the programs are built. On an error everything that was
// started is stopped again. The context bounds the start, not the hub's life: call Stop.
func StartHub(ctx context.Context, options Options) (*Hub, error) {
	h, err := prepareHub(ctx, options)
	if err != nil {
		return nil, err
	}

	if err := h.startControlPlane(ctx, options); err != nil {
		return nil, errors.Join(fmt.Errorf("start hub: %w", err), h.Stop())
	}

	return h, nil
}

func prepareHub(ctx context.Context, options Options) (*Hub, error) {
	h := &Hub{Dir: options.Dir, progress: options.Progress, asDeployed: options.AsDeployed}
	if h.progress == nil {
		h.progress = io.Discard
	}

	var err error

	if options.Tools != nil {
		h.tools = *options.Tools
	} else if h.tools, err = EnsureTools(ctx, h.progress); err != nil {
		return nil, err
	}

	if h.Dir == "" {
		h.ownsDir = true
		if h.Dir, err = os.MkdirTemp("", "hub-"); err != nil {
			return nil, fmt.Errorf("make directory of hub: %w", err)
		}
	}

	for _, name := range []string{"logs", "kubeconfigs"} {
		if err := os.MkdirAll(filepath.Join(h.Dir, name), 0o700); err != nil {
			return nil, fmt.Errorf("make directory of hub: %w", err)
		}
	}

	h.KubeconfigPath = filepath.Join(h.Dir, "kubeconfigs", "admin")
	h.creds, err = newCredentials(filepath.Join(h.Dir, "credentials"))

	return h, err
}

func (h *Hub) startControlPlane(ctx context.Context, options Options) error {
	if err := h.startEtcd(options.DurableEtcd); err != nil {
		return err
	}

	// kube-apiserver retries a refused first connection only after a pause of its own.
	if err := h.process("etcd").eventuallyAlive(ctx, controlPlaneTimeout, "etcd to listen", func(ctx context.Context) error {
		return tcpOpen(ctx, h.etcdURL[len("https://"):])
	}); err != nil {
		return err
	}

	if err := h.startKubeAPIServer(ctx, options.KubeAPIServerArgs); err != nil {
		return err
	}

	if options.WithoutControllerManager {
		return nil
	}

	return h.StartControllerManager(ctx)
}

// Stop ends all processes, in the reverse order of their start but for one rule: etcd goes
// last of all and kube-apiserver before it, because without its storage kube-apiserver takes
// minutes to end. A process that had ended before, or that had to be killed, is an error, and so is
// a program of ours that ended with a status of failure. Calling Stop again does nothing.
func (h *Hub) Stop() error {
	h.mu.Lock()
	processes, ports, fronts := h.processes, h.ports, h.fronts
	h.processes, h.ports, h.fronts = nil, nil, nil
	h.mu.Unlock()

	var errs []error

	for _, p := range slices.Backward(processes) {
		errs = append(errs, p.stop(stopGrace))
	}

	for _, f := range fronts {
		errs = append(errs, f.close())
	}

	for _, p := range ports {
		p.release()
	}

	if h.ownsDir {
		errs = append(errs, os.RemoveAll(h.Dir))
	}

	return errors.Join(errs...)
}

// RESTConfig returns a new client configuration for the administrator, without client-side
// rate limits.
func (h *Hub) RESTConfig() *rest.Config {
	return restConfig(h.server, h.creds.cluster.certPEM, h.creds.admin)
}

// Client returns a typed client for the administrator.
func (h *Hub) Client() kubernetes.Interface { return h.client }

// LogDir returns the directory with the log files of all processes.
func (h *Hub) LogDir() string { return filepath.Join(h.Dir, "logs") }

// savingLogs keeps tests that fail at the same time from writing the same files.
var savingLogs sync.Mutex

// SaveLogs copies the log files of all processes as they are now to a directory that outlasts Stop, in place of what an
// earlier call of this process with the name has left there. It returns the directory.
func (h *Hub) SaveLogs(name string) (to string, err error) {
	savingLogs.Lock()
	defer savingLogs.Unlock()

	to = filepath.Join(os.TempDir(), fmt.Sprintf("e2e-logs-%d", os.Getpid()), strings.ReplaceAll(name, "/", "-"))

	return to, errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(h.LogDir())))
}

// LogPath returns the log file of a process: etcd, kube-apiserver, kube-controller-manager,
// or the name given to a process of this repository.
func (h *Hub) LogPath(process string) string {
	return filepath.Join(h.LogDir(), process+".log")
}

// connect makes the administrator's client.
func (h *Hub) connect() error {
	client, err := kubernetes.NewForConfig(h.RESTConfig())
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}

	h.client = client

	return nil
}
