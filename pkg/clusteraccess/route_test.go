package clusteraccess

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
)

// loopback allows the addresses of test servers.
func loopback() dialguard.Guard {
	return dialguard.Guard{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
}

// listen starts a listener that counts its connections.
func listen(t *testing.T) (port string, arrived *atomic.Int32) {
	t.Helper()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = listener.Close() })

	arrived = &atomic.Int32{}

	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}

			arrived.Add(1)

			_ = connection.Close()
		}
	}()

	_, port, _ = net.SplitHostPort(listener.Addr().String())

	return port, arrived
}

// TestKubeconfigLeadsNowhereForbidden checks that no kubeconfig reaches an address that the guard refuses: an address
// is refused when it is parsed, a name when it is dialled.
func TestKubeconfigLeadsNowhereForbidden(t *testing.T) {
	port, arrived := listen(t)
	private := dialguard.Guard{Denied: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}

	for name, test := range map[string]struct {
		cluster string
		guard   dialguard.Guard
		parsed  bool // it is refused only when it is dialled
		says    string
	}{
		"server":               {"server: 'https://127.0.0.1:" + port + "'", dialguard.Guard{}, false, "cluster.server leads to the loopback address 127.0.0.1"},
		"server in IPv6 form":  {"server: 'https://[::ffff:127.0.0.1]:" + port + "'", dialguard.Guard{}, false, "cluster.server leads to the loopback address"},
		"server, metadata":     {"server: 'https://169.254.169.254'", dialguard.Guard{}, false, "link-local"},
		"server, denied":       {"server: 'https://10.1.2.3'", private, false, "--denied-networks"},
		"server by name":       {"server: 'https://localhost:" + port + "'", dialguard.Guard{}, true, "--allowed-networks"},
		"proxy":                {"server: 'https://workload.invalid', proxy-url: 'http://127.0.0.1:" + port + "'", dialguard.Guard{}, false, "cluster.proxy-url leads to the loopback"},
		"proxy by name":        {"server: 'https://workload.invalid', proxy-url: 'http://localhost:" + port + "'", dialguard.Guard{}, true, "--allowed-networks"},
		"server behind proxy":  {"server: 'https://127.0.0.1:" + port + "', proxy-url: 'http://localhost:" + port + "'", dialguard.Guard{}, false, "cluster.server"},
		"encrypted proxy":      {"server: 'https://workload.invalid', proxy-url: 'https://localhost:" + port + "'", dialguard.Guard{}, true, "--allowed-networks"},
		"server behind denied": {"server: 'https://workload.invalid', proxy-url: 'http://10.1.2.3:3128'", private, false, "cluster.proxy-url"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, err := NewClusters(nil, test.guard).Get(t.Context(), key(), kubeconfig(test.cluster, "token: s3cret-token"))
			if (err == nil) != test.parsed {
				t.Fatalf("got %v", err)
			}

			if err != nil {
				if !errors.Is(err, ErrUnsafe) || Reason(err) != v1alpha1.ReasonUnsafeKubeconfig || !strings.Contains(err.Error(), test.says) {
					t.Errorf("got %v", err)
				}

				return
			}

			_, err = identifyFinally(t, cluster)
			if Reason(err) != v1alpha1.ReasonForbiddenAddress || !strings.Contains(cluster.Message(err), test.says) || strings.Contains(cluster.Message(err), "cannot be reached") {
				t.Errorf("reason %s: %s", Reason(err), cluster.Message(err))
			}
		})
	}

	if got := arrived.Load(); got != 0 {
		t.Errorf("%d connections were made", got)
	}
}

// TestProxyOfTheEnvironmentMayBeAnywhere: the proxy of the environment is the operator's choice, whatever its address.
// A kubeconfig's own proxy is not.
func TestProxyOfTheEnvironmentMayBeAnywhere(t *testing.T) {
	port, arrived := listen(t)
	environment := func(*http.Request) (*url.URL, error) { return url.Parse("http://127.0.0.1:" + port) }

	way, err := (&settings{server: "https://workload.example.com"}).route(environment, dialguard.Guard{})
	if err != nil {
		t.Fatal(err)
	}

	dial := func(way route) error {
		connection, err := way.dialer.DialContext(context.WithoutCancel(t.Context()), "tcp", "127.0.0.1:"+port)
		if err == nil {
			_ = connection.Close()
		}

		return err
	}

	if err := dial(way); err != nil {
		t.Errorf("the proxy of the environment: %v", err)
	}

	_, err = (&settings{server: "https://169.254.169.254"}).route(environment, dialguard.Guard{})
	if !errors.Is(err, ErrUnsafe) {
		t.Errorf("an address behind it: got %v, want ErrUnsafe", err)
	}

	own, err := (&settings{server: "https://workload.example.com", proxy: &url.URL{Scheme: "http", Host: "proxy:3128"}}).route(environment, dialguard.Guard{})
	if err != nil {
		t.Fatal(err)
	}

	before := arrived.Load()

	var forbidden *dialguard.ForbiddenError
	if err := dial(own); !errors.As(err, &forbidden) || arrived.Load() > before+1 {
		t.Errorf("the kubeconfig's own proxy: %v", err)
	}
}
