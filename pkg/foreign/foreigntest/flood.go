package foreigntest

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"io"
	"net"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
)

// framesAtOnce is how many frames of a flood are written together.
const framesAtOnce = 4096

// Flood starts a server that begins its answer to the first request of a connection, and goes on with the same frame without end. It
// returns its address, its certificate, and how many bytes it could send.
func Flood(t testing.TB, begin, again func(*http2.Framer) error) (address string, ca []byte, sent *atomic.Int64) {
	t.Helper()

	sent = &atomic.Int64{}
	server := httptest.NewTLSServer(nil)
	certificate := server.TLS.Certificates
	server.Close()

	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certificate, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = listener.Close() })

	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}

			go flood(connection, sent, begin, again)
		}
	}()

	return listener.Addr().String(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate[0].Certificate[0]}), sent
}

func flood(connection net.Conn, sent *atomic.Int64, begin, again func(*http2.Framer) error) {
	defer connection.Close()

	framer := http2.NewFramer(connection, connection)
	if _, err := io.ReadFull(connection, make([]byte, len(http2.ClientPreface))); err != nil || framer.WriteSettings() != nil {
		return
	}

	for asked := false; !asked; {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}

		_, asked = frame.(*http2.HeadersFrame)
	}

	go func() { _, _ = io.Copy(io.Discard, connection) }()

	var many bytes.Buffer

	one := http2.NewFramer(&many, nil)
	one.AllowIllegalWrites = true

	for range framesAtOnce {
		if again(one) != nil {
			return
		}
	}

	for err := begin(framer); err == nil; {
		var n int

		n, err = connection.Write(many.Bytes())
		sent.Add(int64(n))
	}
}
