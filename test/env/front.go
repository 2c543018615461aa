package env

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// probePeriod is how often a replica is asked whether it is ready; the kubelet's periodSeconds: 1.
	probePeriod = time.Second
	// probeTimeout is the timeoutSeconds of the readiness probe that the chart deploys.
	probeTimeout = 5 * time.Second
	// dialTimeout bounds a connection to a replica.
	dialTimeout = 5 * time.Second
)

// Front stands in for a Service with kube-proxy: one TCP address before several replicas. A new connection goes to the
// next replica whose last probe of /readyz passed, or is closed if there is none. Connections that exist stay with their
// replica, ready or not. Nothing is retried and nothing is read: TLS is between the client and the replica.
type Front struct {
	listener net.Listener
	prober   *http.Client
	living   context.Context // ends with close; replicas come at any time before it
	stop     context.CancelFunc
	running  sync.WaitGroup

	mu       sync.Mutex
	backends []*backend
	next     int
	open     map[net.Conn]struct{}
}

// backend is one replica as the front sees it.
type backend struct {
	address string
	ready   bool
	taken   int // connections so far
}

// newFront listens on the port. The authority signs the replicas' certificates.
func newFront(at *port, ca []byte) (*Front, error) {
	listener, err := net.Listen("tcp", at.address())
	if err != nil {
		return nil, fmt.Errorf("listen before the replicas: %w", err)
	}

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)

	ctx, cancel := context.WithCancel(context.Background())
	f := &Front{
		listener: listener,
		living:   ctx,
		stop:     cancel,
		open:     map[net.Conn]struct{}{},
		prober: &http.Client{Timeout: probeTimeout, Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true, // as the kubelet: a probe is a new connection
		}},
	}

	f.running.Go(func() { f.accept(ctx) })

	return f, nil
}

// port is where clients connect.
func (f *Front) port() int { return f.listener.Addr().(*net.TCPAddr).Port }

// add makes a replica known; it gets connections when it is ready. Each is probed by itself: one that is slow to answer
// must not keep the front from seeing that another one stops.
func (f *Front) add(address string) {
	b := &backend{address: address}

	f.mu.Lock()
	f.backends = append(f.backends, b)
	f.mu.Unlock()

	f.running.Go(func() { f.probe(f.living, b) })
}

// close ends the front and all its connections.
func (f *Front) close() error {
	f.stop()

	err := f.listener.Close()

	f.mu.Lock()
	for conn := range f.open {
		_ = conn.Close() // its copies end, whatever this says
	}
	f.mu.Unlock()

	f.running.Wait()

	return err
}

// Connections returns how many connections each replica was given, in the order of their start.
func (f *Front) Connections() []int {
	f.mu.Lock()
	defer f.mu.Unlock()

	taken := make([]int, 0, len(f.backends))
	for _, b := range f.backends {
		taken = append(taken, b.taken)
	}

	return taken
}

// Ready returns how many replicas get new connections.
func (f *Front) Ready() int {
	f.mu.Lock()
	defer f.mu.Unlock()

	ready := 0

	for _, b := range f.backends {
		if b.ready {
			ready++
		}
	}

	return ready
}

func (f *Front) probe(ctx context.Context, b *backend) {
	ticker := time.NewTicker(probePeriod)
	defer ticker.Stop()

	for {
		ready := f.passes(ctx, b.address)

		f.mu.Lock()
		b.ready = ready
		f.mu.Unlock()

		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// passes probes one replica.
func (f *Front) passes(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/readyz", nil)
	if err != nil {
		return false
	}

	answer, err := f.prober.Do(request)
	if err != nil {
		return false
	}
	defer answer.Body.Close()

	return answer.StatusCode == http.StatusOK
}

func (f *Front) accept(ctx context.Context) {
	for {
		client, err := f.listener.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}

			continue
		}

		f.running.Go(func() { f.serve(ctx, client) })
	}
}

// serve connects one client with the replica whose turn it is.
func (f *Front) serve(ctx context.Context, client net.Conn) {
	defer f.track(ctx, client)()

	chosen, ok := f.choose()
	if !ok {
		return
	}

	replica, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", chosen)
	if err != nil {
		return
	}
	defer f.track(ctx, replica)()

	var copies sync.WaitGroup

	copies.Go(func() { pass(replica, client) })
	copies.Go(func() { pass(client, replica) })
	copies.Wait()
}

// track notes a connection for close, and returns what ends it.
func (f *Front) track(ctx context.Context, conn net.Conn) func() {
	f.mu.Lock()
	f.open[conn] = struct{}{}
	f.mu.Unlock()

	if ctx.Err() != nil { // close may have been through already
		_ = conn.Close()
	}

	return func() {
		_ = conn.Close() // the other end may have closed it

		f.mu.Lock()
		delete(f.open, conn)
		f.mu.Unlock()
	}
}

// choose takes the next ready replica.
func (f *Front) choose() (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()

	for range f.backends {
		b := f.backends[f.next%len(f.backends)]
		f.next++

		if b.ready {
			b.taken++

			return b.address, true
		}
	}

	return "", false
}

// pass copies one direction, and passes its end on. A reset becomes an end, which TLS does not take for a clean one.
func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from) // whatever ended it, the other side must know

	if half, ok := to.(*net.TCPConn); ok {
		_ = half.CloseWrite() // it may be gone already
	}
}
