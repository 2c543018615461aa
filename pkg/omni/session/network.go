package session

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// dialFunc opens one network connection.
type dialFunc func(ctx context.Context, address string) (net.Conn, error)

// network keeps the last network connections of a client, so that the client can close them: gRPC has no way to abandon
// one that only looks healthy.
type network struct {
	dial dialFunc

	mu   sync.Mutex
	open []net.Conn // the last few; closing a closed one does no harm
}

// keptConnections is how many connections network keeps. gRPC has one, or two while it replaces one.
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

// closeConnections closes the open connections; gRPC connects again by itself.
func (n *network) closeConnections() {
	n.mu.Lock()
	open := n.open
	n.open = nil
	n.mu.Unlock()

	for _, connection := range open {
		// Closing TLS may block on a write to a dead connection.
		_ = connection.SetDeadline(time.Now())

		go func() { _ = connection.Close() }()
	}
}

// dialer returns a dialer that connects where the guard allows it; without a guard, anywhere.
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

// checkAddress refuses an endpoint whose host is an address that the guard refuses. Names are checked when they are
// dialled; behind a proxy of the environment, the proxy decides about names.
func checkAddress(target omni.Origin, guard *dialguard.Guard) error {
	if guard == nil {
		return nil
	}

	if err := guard.CheckHost(target.Host); err != nil {
		return fmt.Errorf("the endpoint %w", err)
	}

	return nil
}
