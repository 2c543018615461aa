package clusteraccess

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/answer"
)

// flooded is a server that answers the first request of a connection with the same frame without end. It returns the kubeconfig, and how
// many bytes it could send.
func flooded(t *testing.T, begin, again func(*http2.Framer) error) (kubeconfig []byte, sent *atomic.Int64) {
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

	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate[0].Certificate[0]})

	return kubeconfigOf(listener.Addr().String(), ca), sent
}

func kubeconfigOf(address string, ca []byte) []byte {
	return kubeconfig(fmt.Sprintf("server: 'https://%s', certificate-authority-data: %s", address, base64.StdEncoding.EncodeToString(ca)), "token: t")
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

	for range 4096 {
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

// Frames that are part of no answer, or make it no longer, end with the connection, long before the deadline of the request.
func TestFloodsOfFrames(t *testing.T) {
	const stream, most = 1, 16 << 20

	var header bytes.Buffer

	_ = hpack.NewEncoder(&header).WriteField(hpack.HeaderField{Name: ":status", Value: "200"})

	log.SetOutput(io.Discard) // a line for each frame of a type that is not known; omni-controller discards them, too
	t.Cleanup(func() { log.SetOutput(os.Stderr) })

	headers := func(end bool) func(*http2.Framer) error {
		return func(f *http2.Framer) error {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: header.Bytes(), EndHeaders: end})
		}
	}
	nothing := func(*http2.Framer) error { return nil }

	for name, test := range map[string]struct{ begin, again func(*http2.Framer) error }{
		"continuations": {headers(false), func(f *http2.Framer) error { return f.WriteContinuation(stream, false, nil) }},
		"empty data":    {headers(true), func(f *http2.Framer) error { return f.WriteData(stream, false, nil) }},
		"pings":         {nothing, func(f *http2.Framer) error { return f.WritePing(false, [8]byte{}) }},
		"settings":      {nothing, func(f *http2.Framer) error { return f.WriteSettings() }},
		"unknown":       {nothing, func(f *http2.Framer) error { return f.WriteRawFrame(0xbe, 0, 0, nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			config, sent := flooded(t, test.begin, test.again)
			cluster := get(t, NewClusters(nil, loopback()), config)
			begun := time.Now()

			_, err := cluster.Core().Secrets("apps").Get(t.Context(), "pull", metav1.GetOptions{})
			if !errors.Is(err, answer.ErrFlood) {
				t.Errorf("got %v", err)
			}

			t.Logf("%d MiB in %s: %v", sent.Load()>>20, time.Since(begun), err)

			// Besides what counts, there is what both kernels hold.
			if sent.Load() > most {
				t.Errorf("it could send %d MiB", sent.Load()>>20)
			}
		})
	}
}
