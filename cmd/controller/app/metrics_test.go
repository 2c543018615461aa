package app

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// serveMetrics serves metrics with the given flags until the test ends, and returns the address.
func serveMetrics(t *testing.T, args ...string) string {
	t.Helper()

	options, err := parse(t, append([]string{"--metrics-bind-address=127.0.0.1:0"}, args...)...).Metrics.serving()
	if err != nil {
		t.Fatal(err)
	}

	// Nothing listens at this address: a client without credentials is refused without a call to the management
	// cluster.
	metrics, err := server.NewServer(options, &rest.Config{Host: "https://127.0.0.1:1"}, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)

	go func() { ended <- metrics.Start(ctx) }()

	t.Cleanup(func() {
		stop()

		if err := <-ended; err != nil {
			t.Error(err)
		}
	})

	bound, ok := metrics.(interface{ GetBindAddr() string })
	if !ok {
		t.Fatalf("%T has no address", metrics)
	}

	for bound.GetBindAddr() == "" {
		if t.Context().Err() != nil {
			t.Fatal("the metrics are not served")
		}

		time.Sleep(time.Millisecond)
	}

	return bound.GetBindAddr()
}

// readMetrics returns the answer to a reader without credentials.
func readMetrics(t *testing.T, url string) (code int, body string, state *tls.ConnectionState) {
	t.Helper()

	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		// The server's identity does not matter here; test/deploy verifies the certificate.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true, DisableKeepAlives: true,
	}}

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}

	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()

	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}

	return response.StatusCode, string(text), response.TLS
}

// By default nobody can read the metrics without credentials, nor without TLS.
func TestMetricsAreForReaders(t *testing.T) {
	address := serveMetrics(t)

	code, body, state := readMetrics(t, "https://"+address+"/metrics")
	if code != http.StatusUnauthorized || strings.Contains(body, "go_goroutines") {
		t.Errorf("without credentials: %d, %s", code, body)
	}

	if state == nil || state.NegotiatedProtocol == "h2" {
		t.Errorf("the connection is %+v", state)
	}

	if code, body, _ := readMetrics(t, "http://"+address+"/metrics"); code != http.StatusBadRequest {
		t.Errorf("in plain text: %d, %s", code, body)
	}
}

func TestMetricsInPlainText(t *testing.T) {
	code, body, _ := readMetrics(t, "http://"+serveMetrics(t, "--metrics-secure=false")+"/metrics")
	if code != http.StatusOK || !strings.Contains(body, "go_goroutines") {
		t.Errorf("%d, %s", code, body)
	}
}

// The certificate comes from the directory, and a renewed one replaces it.
func TestCertificateOfMetrics(t *testing.T) {
	dir := t.TempDir()
	writeCertificate(t, dir, "first.example.com")

	address := serveMetrics(t, "--metrics-cert-path="+dir)
	shows := func() string {
		_, _, state := readMetrics(t, "https://"+address+"/metrics")

		return state.PeerCertificates[0].DNSNames[0]
	}

	if got := shows(); got != "first.example.com" {
		t.Errorf("the certificate is for %s", got)
	}

	writeCertificate(t, dir, "second.example.com")

	await.Until(t, "the renewed certificate is taken", func() bool { return shows() == "second.example.com" })
}

// A missing certificate ends the start: only the readers of the metrics would notice another one in its place.
func TestMissingCertificateOfMetrics(t *testing.T) {
	_, err := parse(t, "--metrics-cert-path="+t.TempDir()).Metrics.serving()
	if err == nil || !strings.Contains(err.Error(), "--metrics-cert-path: open ") || !strings.Contains(err.Error(), "tls.crt") {
		t.Error(err)
	}
}

func writeCertificate(t *testing.T, dir, host string) {
	t.Helper()

	certificate, key, err := certutil.GenerateSelfSignedCertKeyWithFixtures(host, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}

	// While only one of the two files is new, they do not match, and the old pair stays in use.
	for name, content := range map[string][]byte{certificateFile: certificate, keyFile: key} {
		temporary := filepath.Join(dir, "new-"+name)
		if err := os.WriteFile(temporary, content, 0o600); err != nil {
			t.Fatal(err)
		}

		if err := os.Rename(temporary, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}
