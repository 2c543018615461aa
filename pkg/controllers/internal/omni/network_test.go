package omni

import (
	"context"
	"net"
	"testing"
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

	n.sever()
	n.sever()

	for i, connection := range far[2:] {
		if _, err := connection.Read(make([]byte, 1)); err == nil {
			t.Errorf("connection %d is still open", i)
		}
	}
}

func TestBehindProxy(t *testing.T) {
	// Loopback never goes through a proxy, whatever the environment says.
	if (endpoint{host: "127.0.0.1", port: "443", tls: true}).behindProxy() {
		t.Error("loopback")
	}
}
