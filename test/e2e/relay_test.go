package e2e

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// relay stands between a connection and its Omni like a network that can break in ways that a
// server cannot: packets vanish and nobody is told.
type relay struct {
	listener net.Listener
	target   string
	limit    atomic.Int64 // answered bytes that still get through; negative: all
	mu       sync.Mutex
	open     map[net.Conn]struct{}
}

// newRelay serves on a loopback port, for which the simulator's certificate is good as well.
func newRelay(t *testing.T, sim *omnisim.Server) *relay {
	t.Helper()

	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	r := &relay{listener: listener, target: strings.TrimPrefix(sim.Endpoint(), "https://"), open: map[net.Conn]struct{}{}}
	r.limit.Store(-1)

	go r.serve()

	t.Cleanup(func() {
		_ = listener.Close()
		r.cut()
	})

	return r
}

func (r *relay) endpoint() string { return "https://" + r.listener.Addr().String() }

// swallow lets this many bytes of answers through, and then nothing in either direction.
// Connections stay open, and new ones are accepted.
func (r *relay) swallow(after int64) { r.limit.Store(after) }

// heal lets everything through that is sent from now on. What was swallowed is lost, and with it
// every connection of that time.
func (r *relay) heal() {
	r.limit.Store(-1)
	r.cut()
}

// cut resets all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()

	for connection := range r.open {
		_ = connection.Close()
	}
}

func (r *relay) serve() {
	for {
		near, err := r.listener.Accept()
		if err != nil {
			return
		}

		go r.join(near)
	}
}

func (r *relay) join(near net.Conn) {
	defer r.keep(near)()

	far, err := (&net.Dialer{}).Dial("tcp", r.target)
	if err != nil {
		return
	}

	defer r.keep(far)()

	go r.copy(far, near, false)
	r.copy(near, far, true)
}

// keep notes a connection, and returns what ends it.
func (r *relay) keep(connection net.Conn) func() {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.open[connection] = struct{}{}

	return func() {
		_ = connection.Close()

		r.mu.Lock()
		defer r.mu.Unlock()

		delete(r.open, connection)
	}
}

// copy moves what arrives, unless it is swallowed.
func (r *relay) copy(to, from net.Conn, answers bool) {
	buffer := make([]byte, 16<<10)

	for {
		n, err := from.Read(buffer)
		if err != nil {
			_ = to.Close()

			return
		}

		if n = r.admit(n, answers); n == 0 {
			continue
		}

		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// admit says how many of n bytes get through.
func (r *relay) admit(n int, answers bool) int {
	left := r.limit.Load()

	switch {
	case left < 0:
		return n
	case !answers && left > 0:
		return n
	case !answers:
		return 0
	}

	admitted := min(int64(n), left)
	r.limit.Add(-admitted)

	return int(admitted)
}
