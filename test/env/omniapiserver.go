package env

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/kubernetes"
)

// OmniAPIServerOptions says how to start omni-apiserver. The zero value is usable.
type OmniAPIServerOptions struct {
	// Binary is the program. Default: BuildBinaries.
	Binary string

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

	url string
}

// StartOmniAPIServer starts omni-apiserver with the rights of artifacts/deploy, registers the
// APIService, and returns when the API is served through kube-apiserver. A hub has one at
// most. The context bounds the start only.
func (h *Hub) StartOmniAPIServer(ctx context.Context, options OmniAPIServerOptions) (*OmniAPIServer, error) {
	if h.process(apiServerName) != nil {
		return nil, fmt.Errorf("%s was started before; use Restart", apiServerName)
	}

	if options.Binary == "" {
		binaries, err := BuildBinaries(ctx, h.progress)
		if err != nil {
			return nil, err
		}

		options.Binary = binaries.OmniAPIServer
	}

	port, err := h.reservePort()
	if err != nil {
		return nil, err
	}

	if err := h.prepareOmniAPIServer(ctx, port.number); err != nil {
		return nil, err
	}

	kubeconfig, err := h.serviceAccountKubeconfig(apiServerName)
	if err != nil {
		return nil, err
	}

	s := &OmniAPIServer{EtcdDataDir: filepath.Join(h.Dir, "omni-etcd"), url: "https://" + port.address()}
	s.component = &component{hub: h, ready: s.served, spec: processSpec{
		name:   apiServerName,
		binary: options.Binary,
		args: append([]string{
			"--kubeconfig=" + kubeconfig,
			"--authentication-kubeconfig=" + kubeconfig,
			"--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=" + loopback,
			"--secure-port=" + strconv.Itoa(port.number),
			"--tls-cert-file=" + h.creds.file(apiServerName+".crt"),
			"--tls-private-key-file=" + h.creds.file(apiServerName+".key"),
			"--etcd-data-dir=" + s.EtcdDataDir,
		}, options.Args...),
	}}

	return s, s.launch(ctx)
}

// prepareOmniAPIServer does what an installation does: RBAC, certificate, registration.
func (h *Hub) prepareOmniAPIServer(ctx context.Context, port int) error {
	if err := h.applyDeployment(ctx); err != nil {
		return err
	}

	// kube-apiserver connects to localhost but verifies the name of the Service.
	if err := h.creds.issueFiles(apiServerName, leaf{
		commonName: apiServerName,
		dnsNames:   []string{apiServerName + "." + SystemNamespace + ".svc", "localhost"},
		addresses:  []net.IP{net.ParseIP(loopback)},
	}); err != nil {
		return err
	}

	return h.registerAPIService(ctx, port)
}

// served returns nil when the server itself is ready and its API can be used through
// kube-apiserver, whose own view of it may be up to 30 seconds old.
func (s *OmniAPIServer) served(ctx context.Context) error {
	config := s.hub.RESTConfig()
	config.Host = s.url

	direct, err := kubernetes.NewForConfig(config)
	if err != nil {
		return giveUp{fmt.Errorf("make client: %w", err)}
	}

	answer, err := direct.Discovery().RESTClient().Get().AbsPath("/readyz").Param("verbose", "true").DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("not ready: %w: %s", err, answer)
	}

	return s.hub.apiServed(ctx)
}

// URL returns the server's own address, for tests that go past kube-apiserver. Its certificate
// is signed by Hub.CA.
func (s *OmniAPIServer) URL() string { return s.url }
