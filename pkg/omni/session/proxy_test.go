package session

import (
	"encoding/base64"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// proxy is one to a single server, whatever its name.
type proxy struct {
	server string
	refuse int // HTTP status; 0: none

	mu    sync.Mutex
	asked []string // "address credentials"
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, r.Host+" "+r.Header.Get("Proxy-Authorization"))
	p.mu.Unlock()

	if p.refuse != 0 {
		http.Error(w, "support ID "+time.Now().String(), p.refuse)

		return
	}

	far, err := net.Dial("tcp", p.server)
	if err != nil {
		http.Error(w, "", http.StatusBadGateway)

		return
	}
	defer far.Close()

	near, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer near.Close()

	_, _ = io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n")

	go func() { _, _ = io.Copy(far, near); _ = far.Close() }()

	_, _ = io.Copy(near, far)
}

// started returns what chooses the proxy, with a password.
func (p *proxy) started(t *testing.T) func(*http.Request) (*url.URL, error) {
	t.Helper()

	server := httptest.NewServer(p)
	t.Cleanup(server.Close)

	return http.ProxyURL(&url.URL{Scheme: "http", User: url.UserPassword("me", "hunter2"), Host: strings.TrimPrefix(server.URL, "http://")})
}

// Omni is reached through the proxy with a CA of one's own, too, and only the proxy knows its address.
func TestThroughAProxy(t *testing.T) {
	_, key := newAccount(t, startOmni(t, omnisim.Options{}), "operator", omnisim.RoleOperator, time.Hour)

	far := httptest.NewUnstartedServer(http.NotFoundHandler())
	far.EnableHTTP2 = true
	far.StartTLS()
	t.Cleanup(far.Close)

	p := &proxy{server: far.Listener.Addr().String()}
	config := Config{
		Endpoint: "https://example.com:8443", Key: key, // a name of the certificate
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: far.Certificate().Raw}), Proxy: p.started(t),
	}

	if _, err := dial(t, config); err == nil || !strings.Contains(err.Error(), "is not Omni's API: HTTP 404") {
		t.Errorf("with a CA of one's own: %v", err)
	}

	config.CABundle = nil

	if _, err := dial(t, config); omni.Classify(err) != omni.ClassTLS {
		t.Errorf("with the system's: %v", err)
	}

	if want := "example.com:8443 Basic " + base64.StdEncoding.EncodeToString([]byte("me:hunter2")); len(p.asked) < 2 || p.asked[0] != want {
		t.Errorf("the proxy was asked for %q", p.asked)
	}
}

// A simulator's own traffic, with watches, goes through a proxy as well.
func TestAllThroughAProxy(t *testing.T) {
	server := startOmni(t, omnisim.Options{})
	_, key := newAccount(t, server, "operator", omnisim.RoleOperator, time.Hour)
	p := &proxy{server: strings.TrimPrefix(server.Endpoint(), "https://")}

	client, err := dial(t, Config{Endpoint: server.Endpoint(), CABundle: server.CAPEM(), Key: key, Proxy: p.started(t)})
	if err != nil {
		t.Fatal(err)
	}

	client.liveness.closeConnections()

	if err := client.Check(t.Context()); err != nil && omni.Classify(err) != omni.ClassUnreachable {
		t.Error(err)
	}

	for client.Check(t.Context()) != nil { // it connects again
		if t.Context().Err() != nil {
			t.Fatal(t.Context().Err())
		}
	}

	if len(p.asked) != 2 {
		t.Errorf("the proxy was asked for %q", p.asked)
	}
}

func TestRefusalOfAProxy(t *testing.T) {
	server := startOmni(t, omnisim.Options{})
	_, key := newAccount(t, server, "operator", omnisim.RoleOperator, time.Hour)
	p := &proxy{refuse: http.StatusForbidden}

	_, err := dial(t, Config{Endpoint: server.Endpoint(), CABundle: server.CAPEM(), Key: key, Proxy: p.started(t)})

	said := omni.Message(err)
	if omni.Classify(err) != omni.ClassUnreachable || !strings.Contains(said, "the proxy answers HTTP 403 (Forbidden)") ||
		strings.Contains(said, "support ID") || strings.Contains(said, "hunter2") {
		t.Errorf("%q", said)
	}

	_, err = dial(t, Config{Endpoint: server.Endpoint(), CABundle: server.CAPEM(), Key: key, Proxy: http.ProxyURL(&url.URL{Scheme: "socks5", Host: "me:hunter2@proxy"})})
	if said := omni.Message(err); omni.Classify(err) != omni.ClassUnreachable || !strings.Contains(said, `the scheme "socks5"`) || strings.Contains(said, "hunter2") {
		t.Errorf("%q", said)
	}
}
