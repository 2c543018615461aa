package env

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// OmniAPIServerOptions says how to start omni-apiserver. The zero value is usable.
type OmniAPIServerOptions struct {
	// Binary is the program. Default: BuildBinaries.
	Binary string

	// MemoryLimit is what the program may have, in bytes, as the limit of its Pod; 0: no limit. See CanLimitMemory.
	MemoryLimit uint64

	// Args are more flags. A flag given twice has its last value, so they can also replace
	// those that StartOmniAPIServer gives.
	Args []string
}

// OmniAPIServer is a running omni-apiserver, with an etcd of its own inside, behind the hub's
// kube-apiserver.
type OmniAPIServer struct {
	*component

	// EtcdDataDir is the data directory of the embedded etcd. It outlives Stop, Kill and
	// Restart.
	EtcdDataDir string

	address string
	port    int
}

// StartOmniAPIServer starts omni-apiserver with the rights that are deployed, registers the
// APIService, and returns when the API is served through kube-apiserver. A hub has one at
// most. The context bounds the start only.
func (h *Hub) StartOmniAPIServer(ctx context.Context, options OmniAPIServerOptions) (*OmniAPIServer, error) {
	if h.process(apiServerName) != nil {
		return nil, fmt.Errorf("%s was started before; use Restart", apiServerName)
	}

	if err := h.buildAPIServer(ctx, &options); err != nil {
		return nil, err
	}

	s, err := h.newOmniAPIServer(apiServerName, []string{"--etcd-data-dir=" + dataDir(h, apiServerName)}, options)
	if err != nil {
		return nil, err
	}

	s.component.ready = s.served

	if err := h.prepareOmniAPIServer(ctx, s.port); err != nil {
		return nil, err
	}

	return s, s.launch(ctx)
}

// buildAPIServer fills in the program if the caller did not name one.
func (h *Hub) buildAPIServer(ctx context.Context, options *OmniAPIServerOptions) error {
	if options.Binary != "" {
		return nil
	}

	binaries, err := BuildBinaries(ctx, h.progress)
	options.Binary = binaries.OmniAPIServer

	return err
}

// dataDir is where the embedded etcd of that omni-apiserver is.
func dataDir(h *Hub, name string) string {
	if name == apiServerName {
		return filepath.Join(h.Dir, "omni-etcd")
	}

	return filepath.Join(h.Dir, name+"-etcd")
}

// newOmniAPIServer decides about the port and flags; its user decides when it is ready.
func (h *Hub) newOmniAPIServer(name string, storage []string, options OmniAPIServerOptions) (*OmniAPIServer, error) {
	port, err := h.reservePort()
	if err != nil {
		return nil, err
	}

	kubeconfig, err := h.serviceAccountKubeconfig(apiServerName)
	if err != nil {
		return nil, err
	}

	args := append([]string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=" + loopback,
		"--secure-port=" + strconv.Itoa(port.number),
		"--tls-cert-file=" + h.creds.file(apiServerName+".crt"),
		"--tls-private-key-file=" + h.creds.file(apiServerName+".key"),
	}, storage...)

	s := &OmniAPIServer{EtcdDataDir: dataDir(h, name), address: port.address(), port: port.number}
	s.component = &component{hub: h, spec: processSpec{
		name: name, binary: options.Binary, args: append(args, options.Args...),
		memory: options.MemoryLimit, env: garbageLimit(options.MemoryLimit),
	}}

	return s, nil
}

// garbageLimit tells the program the limit of its memory, which it reads from the container's file system otherwise: 85 %
// is what it takes of that.
func garbageLimit(memory uint64) []string {
	const share, percent = 85, 100

	if memory == 0 {
		return nil
	}

	return []string{"GOMEMLIMIT=" + strconv.FormatUint(memory/percent*share, 10)}
}

// prepareOmniAPIServer does what an installation does: RBAC, certificate, registration.
func (h *Hub) prepareOmniAPIServer(ctx context.Context, port int) error {
	if err := h.applyDeployment(ctx); err != nil {
		return err
	}

	if err := h.issueServingCertificate(); err != nil {
		return err
	}

	return h.registerAPIService(ctx, port)
}

// served returns nil when the server itself is ready and its API can be used through
// kube-apiserver, whose own view of it may be up to 30 seconds old.
func (s *OmniAPIServer) served(ctx context.Context) error {
	if err := s.Ready(ctx); err != nil {
		return err
	}

	return s.hub.apiServed(ctx)
}

// Ready returns nil when the server's own readiness check passes.
func (s *OmniAPIServer) Ready(ctx context.Context) error {
	direct, err := kubernetes.NewForConfig(s.RESTConfig())
	if err != nil {
		return giveUp{fmt.Errorf("make client: %w", err)}
	}

	answer, err := direct.Discovery().RESTClient().Get().AbsPath("/readyz").Param("verbose", "true").DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("not ready: %w: %s", err, answer)
	}

	return nil
}

// RestartDirectly is Restart for tests that go past kube-apiserver: it waits for the server's own readiness check only,
// and not for kube-apiserver, which looks at a server that was gone only every 30 seconds.
func (s *OmniAPIServer) RestartDirectly(ctx context.Context) error {
	through := s.component.ready
	s.component.ready = s.Ready

	defer func() { s.component.ready = through }()

	return s.Restart(ctx)
}

// RESTConfig returns a new client configuration for the administrator that goes past kube-apiserver, without
// client-side rate limits. It asks as kube-apiserver does, with the front proxy's certificate: the server takes bodies from
// nobody else.
func (s *OmniAPIServer) RESTConfig() *rest.Config {
	config := restConfig(s.URL(), s.hub.creds.cluster.certPEM, s.hub.creds.frontProxyClient)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return asAdmin{next} })

	return config
}

// asAdmin says that requests are the administrator's.
type asAdmin struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a asAdmin) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("X-Remote-User", adminUser)
	request.Header.Set("X-Remote-Group", adminGroup)

	return a.next.RoundTrip(request)
}

// URL returns the server's own address, for tests that go past kube-apiserver. Its certificate
// is signed by Hub.CA.
func (s *OmniAPIServer) URL() string { return "https://" + s.address }
