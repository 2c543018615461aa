package answer

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
)

// ErrFlood is the error of a connection over which a server sends without answering.
var ErrFlood = errors.New("the server sends without answering, which is refused")

const (
	// idleBytes is how many bytes may come over connections that become no answer: handshakes, and what keeps HTTP/2 going. An
	// empty frame has 9.
	idleBytes = 2 << 20
	// openBytes is how many more for each request that was sent and whose answer is not closed: its header, and what
	// HTTP/2 buffers of a body that nobody reads yet, 1 MiB at most by the client's settings.
	openBytes = 2 << 20
	// maxRead is how many bytes of a body are read at once, less than openBytes: net/http fills a buffer with a chunk of HTTP/1.1, however
	// large both are, before it returns any of it.
	maxRead = 1 << 20
	// paidByByte and paidByRead are what each byte of a body, and each read, account for: small pieces have a frame and a record of TLS
	// around them.
	paidByByte, paidByRead = 4, 64
)

// Wire compares what comes over the connections of one client with the answers that it becomes. HTTP/2 has frames that are
// part of no answer, and empty ones that make no answer longer, so that neither its size nor its deadline bounds how many
// come. The zero value is ready for use, by several goroutines.
type Wire struct {
	mu         sync.Mutex
	open       int64 // requests whose answers are not closed
	unanswered int64 // bytes
}

// Dialer returns dial for connections that are counted. A read that exceeds the limit fails with ErrFlood, and ends the connection.
func (w *Wire) Dialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		connection, err := dial(ctx, network, address)
		if err != nil {
			return nil, err // the caller is net/http
		}

		return &wireConn{connection, w}, nil
	}
}

// RoundTrip sends a request, and counts the answer while it is read.
func (w *Wire) RoundTrip(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.open++
	w.mu.Unlock()

	response, err := next.RoundTrip(request)
	if err != nil {
		w.closed()

		return nil, err // the caller is net/http
	}

	response.Body = &wireBody{ReadCloser: response.Body, wire: w}

	return response, nil
}

// closed ends a request. What was still buffered of its answer is nothing to hold against the server.
func (w *Wire) closed() {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.open--
	w.unanswered = max(0, w.unanswered-openBytes)
}

func (w *Wire) read(bytes int64) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.unanswered = max(0, w.unanswered-bytes*paidByByte-paidByRead)
}

// came counts what has come and reports whether it is too much. The next connection begins anew.
func (w *Wire) came(bytes int64) (tooMuch bool) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.unanswered += bytes
	if tooMuch = w.unanswered > idleBytes+w.open*openBytes; tooMuch {
		w.unanswered = 0
	}

	return tooMuch
}

type wireConn struct {
	net.Conn

	wire *Wire
}

// Read implements io.Reader.
func (c *wireConn) Read(buffer []byte) (int, error) {
	n, err := c.Conn.Read(buffer)
	if c.wire.came(int64(n)) {
		return 0, errors.Join(ErrFlood, c.Conn.Close())
	}

	return n, err // io.EOF must stay io.EOF
}

type wireBody struct {
	io.ReadCloser

	wire   *Wire
	closed sync.Once
}

// Read implements io.Reader.
func (b *wireBody) Read(buffer []byte) (int, error) {
	n, err := b.ReadCloser.Read(buffer[:min(len(buffer), maxRead)])
	if n > 0 {
		b.wire.read(int64(n))
	}

	return n, err // io.EOF must stay io.EOF
}

// Close implements io.Closer.
func (b *wireBody) Close() error {
	b.closed.Do(b.wire.closed)

	return b.ReadCloser.Close() // the caller is net/http
}
