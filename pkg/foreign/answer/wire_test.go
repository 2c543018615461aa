package answer_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/answer"
)

// endless is a connection over which something comes whenever it is read.
type endless struct {
	net.Conn

	closed bool
}

// Read implements io.Reader.
func (e *endless) Read(buffer []byte) (int, error) { return len(buffer), nil }

// Close implements io.Closer.
func (e *endless) Close() error {
	e.closed = true

	return nil
}

func dialled(t *testing.T, wire *answer.Wire) (net.Conn, *endless) {
	t.Helper()

	under := &endless{}

	connection, err := wire.Dialer(func(context.Context, string, string) (net.Conn, error) { return under, nil })(t.Context(), "tcp", "")
	if err != nil {
		t.Fatal(err)
	}

	return connection, under
}

// open sends a request whose answer has this body.
func open(t *testing.T, wire *answer.Wire, body []byte) io.ReadCloser {
	t.Helper()

	response, err := wire.RoundTrip(answers(body), &http.Request{})
	if err != nil {
		t.Fatal(err)
	}

	return response.Body
}

type answers []byte

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{Body: io.NopCloser(bytes.NewReader(a))}, nil
}

func TestAFloodEndsTheConnection(t *testing.T) {
	for requests := range 3 {
		wire := &answer.Wire{}
		connection, under := dialled(t, wire)

		for range requests {
			open(t, wire, nil)
		}

		came, err := io.Copy(io.Discard, connection)
		if most := int64(2+2*requests) << 20; !errors.Is(err, answer.ErrFlood) || !under.closed || came > most || came < most-1<<20 {
			t.Errorf("%d requests: %v after %d KiB", requests, err, came>>10)
		}

		// The next connection begins anew.
		connection, _ = dialled(t, wire)
		if n, err := connection.Read(make([]byte, 1<<20)); err != nil || n != 1<<20 {
			t.Errorf("%d, %v", n, err)
		}
	}
}

// chunk is a body that fills what it is read into, as net/http does with a large chunk of HTTP/1.1.
type chunk struct{ connection net.Conn }

// Read implements io.Reader.
func (c chunk) Read(buffer []byte) (int, error) { return io.ReadFull(c.connection, buffer) }

// Close implements io.Closer.
func (chunk) Close() error { return nil }

// RoundTrip implements http.RoundTripper.
func (c chunk) RoundTrip(*http.Request) (*http.Response, error) { return &http.Response{Body: c}, nil }

// A large answer that is read into a large buffer is an answer.
func TestALargeReadIsNoFlood(t *testing.T) {
	wire := &answer.Wire{}
	connection, _ := dialled(t, wire)

	response, err := wire.RoundTrip(chunk{connection}, &http.Request{})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()

	if _, err := io.ReadFull(response.Body, make([]byte, 32<<20)); err != nil {
		t.Error(err)
	}
}

// Small events of a watch, in a frame and a record of TLS each, are answers, however many they are; so are answers that are closed before
// they were read.
func TestSmallAnswersAreNoFlood(t *testing.T) {
	const (
		count = 1 << 18
		event = 20
		frame = event + 31
	)

	wire := &answer.Wire{}
	connection, _ := dialled(t, wire)
	body := open(t, wire, make([]byte, count*event))

	for range count {
		_, came := connection.Read(make([]byte, frame))

		if _, err := body.Read(make([]byte, event)); came != nil || err != nil {
			t.Fatal(came, err)
		}
	}

	for range 100 {
		unread := open(t, wire, nil)

		if _, err := connection.Read(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}

		if err := unread.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
