package clusteraccess

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/answer"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/foreigntest"
)

func kubeconfigOf(address string, ca []byte) []byte {
	return kubeconfig(fmt.Sprintf("server: 'https://%s', certificate-authority-data: %s", address, base64.StdEncoding.EncodeToString(ca)), "token: t")
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
			address, ca, sent := foreigntest.Flood(t, test.begin, test.again)
			cluster := get(t, NewClusters(nil, loopback()), kubeconfigOf(address, ca))
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
