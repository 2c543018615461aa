package session

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
)

// dialFunc opens one network connection.
type dialFunc func(ctx context.Context, address string) (net.Conn, error)

// network keeps the last network connections of a client, so that they can be
// given up from outside: gRPC offers no way to leave one that only looks well.
type network struct {
	dial dialFunc

	mu   sync.Mutex
	open []net.Conn // the last few; closed ones do no harm
}

// keptConnections is how many are remembered. gRPC has one, or two while it
// replaces one.
const keptConnections = 4

func (n *network) connect(ctx context.Context, address string) (net.Conn, error) {
	connection, err := n.dial(ctx, address)
	if err != nil {
		return nil, err
	}

	n.mu.Lock()
	defer n.mu.Unlock()

	n.open = append(n.open, connection)
	if len(n.open) > keptConnections {
		n.open = slices.Clone(n.open[1:])
	}

	return connection, nil
}

// sever closes what is open; gRPC connects again by itself.
func (n *network) sever() {
	n.mu.Lock()
	open := n.open
	n.open = nil
	n.mu.Unlock()

	for _, connection := range open {
		// Closing TLS may want to write to a connection that takes nothing.
		_ = connection.SetDeadline(time.Now())

		go func() { _ = connection.Close() }()
	}
}

// dialer connects where the guard allows it; without a guard anywhere.
func dialer(guard *dialguard.Guard) *net.Dialer {
	if guard == nil {
		return &net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}
	}

	return guard.Dialer(connectTimeout)
}

func tcpDialer(guard *dialguard.Guard) dialFunc {
	return func(ctx context.Context, address string) (net.Conn, error) {
		return dialer(guard).DialContext(ctx, "tcp", address)
	}
}

// checkAddress refuses an endpoint that is an address which the guard refuses. One
// with a name is decided about when it is dialled; behind a proxy of the environment
// the proxy decides about names.
func (e endpoint) checkAddress(guard *dialguard.Guard) error {
	if guard == nil {
		return nil
	}

	if err := guard.CheckHost(e.host); err != nil {
		return fmt.Errorf("the endpoint %w", err)
	}

	return nil
}

// behindProxy reports whether the environment names a proxy for the endpoint. gRPC
// reaches it only with its own dialer.
func (e endpoint) behindProxy() bool {
	scheme := "http"
	if e.tls {
		scheme = "https"
	}

	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: scheme, Host: e.address()}})

	return err != nil || proxy != nil
}
