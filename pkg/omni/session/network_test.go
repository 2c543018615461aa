package session

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

func TestSeverClosesTheLastConnections(t *testing.T) {
	var far []net.Conn

	n := &network{dial: func(context.Context, string) (net.Conn, error) {
		near, other := net.Pipe()
		far = append(far, other)

		return near, nil
	}}

	for range keptConnections + 2 {
		if _, err := n.connect(t.Context(), "omni:443"); err != nil {
			t.Fatal(err)
		}
	}

	if len(n.open) != keptConnections {
		t.Errorf("%d are remembered", len(n.open))
	}

	n.closeConnections()
	n.closeConnections()

	for i, connection := range far[2:] {
		if _, err := connection.Read(make([]byte, 1)); err == nil {
			t.Errorf("connection %d is still open", i)
		}
	}
}

func TestBehindProxy(t *testing.T) {
	// Loopback never uses a proxy, whatever the environment.
	if proxy, err := proxyOf(nil, omni.Origin{Host: "127.0.0.1", Port: "443", TLS: true}); proxy != nil || err != nil {
		t.Error("loopback")
	}
}

// TestEndpointLeadsNowhereForbidden checks that no connection reaches an address that the guard refuses: TLS by the
// library, our own TLS, and plaintext.
func TestEndpointLeadsNowhereForbidden(t *testing.T) {
	server := startOmni(t, omnisim.Options{})
	_, key := newAccount(t, server, "operator", omnisim.RoleOperator, time.Hour)
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	byName := strings.Replace(server.Endpoint(), "127.0.0.1", "localhost", 1)

	for name, test := range map[string]struct {
		config Config
		guard  dialguard.Guard
		says   string // empty: it connects
	}{
		"own roots":            {Config{Endpoint: server.Endpoint(), CABundle: server.CAPEM()}, dialguard.Guard{}, "loopback address 127.0.0.1"},
		"own roots, by name":   {Config{Endpoint: byName, CABundle: server.CAPEM()}, dialguard.Guard{}, "--allowed-networks"},
		"system roots by name": {Config{Endpoint: byName}, dialguard.Guard{}, "--allowed-networks"},
		"without TLS":          {Config{Endpoint: strings.Replace(byName, "https://", "grpc://", 1)}, dialguard.Guard{}, "--allowed-networks"},
		"denied":               {Config{Endpoint: server.Endpoint(), CABundle: server.CAPEM()}, dialguard.Guard{Denied: loopback}, "--denied-networks"},
		"allowed":              {Config{Endpoint: server.Endpoint(), CABundle: server.CAPEM()}, dialguard.Guard{Denied: loopback, Allowed: loopback}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			test.config.Key, test.config.Guard = key, &test.guard

			_, err := dial(t, test.config)

			switch {
			case test.says == "" && err != nil:
				t.Error(err)
			case test.says != "" && (omni.Classify(err) != omni.ClassUnreachable || !strings.Contains(omni.Message(err), test.says)):
				t.Errorf("class %s: %s", omni.Classify(err), omni.Message(err))
			}
		})
	}
}
