package env

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// frontBackend is a replica that says who it is.
type frontBackend struct {
	server *httptest.Server
	ready  atomic.Bool
}

func newFrontBackend(t *testing.T, name string, pair tls.Certificate) *frontBackend {
	t.Helper()

	b := &frontBackend{}
	b.ready.Store(true)

	b.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" && !b.ready.Load() {
			w.WriteHeader(http.StatusInternalServerError)

			return
		}

		_, _ = io.WriteString(w, name)
	}))
	b.server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	b.server.StartTLS()
	t.Cleanup(b.server.Close)

	return b
}

// TestFront: new connections go to ready replicas in turn, and those that exist stay where they are.
func TestFront(t *testing.T) {
	authority, err := newAuthority("front")
	if err != nil {
		t.Fatal(err)
	}

	issued, err := authority.issue(leaf{commonName: "replica", addresses: []net.IP{net.ParseIP(loopback)}})
	if err != nil {
		t.Fatal(err)
	}

	pair, err := tls.X509KeyPair(issued.cert, issued.key)
	if err != nil {
		t.Fatal(err)
	}

	at, err := reservePort()
	if err != nil {
		t.Fatal(err)
	}
	defer at.release()

	first, second := newFrontBackend(t, "first", pair), newFrontBackend(t, "second", pair)

	front, err := newFront(at, authority.certPEM)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := front.close(); err != nil {
			t.Error(err)
		}
	})

	for _, b := range []*frontBackend{first, second} {
		front.add(strings.TrimPrefix(b.server.URL, "https://"))
	}

	ask := func(client *http.Client) string {
		answer, err := client.Get("https://" + at.address() + "/")
		if err != nil {
			return "nobody"
		}
		defer answer.Body.Close()

		body, _ := io.ReadAll(answer.Body)

		return string(body)
	}
	connect := func() *http.Client {
		roots := x509.NewCertPool()
		roots.AddCert(authority.cert)

		return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	}

	waitReady(t, front, 2)

	stays := connect()
	got := []string{ask(stays), ask(connect())}

	if slices.Sort(got); !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("two connections went to %q", got)
	}

	home := ask(stays)
	other := map[string]*frontBackend{"first": first, "second": second}[home]
	other.ready.Store(false)
	waitReady(t, front, 1)

	if now := ask(stays); now != home {
		t.Errorf("the connection moved from %s to %s", home, now)
	}

	for range 3 {
		if to := ask(connect()); to == home || to == "nobody" {
			t.Errorf("a new connection went to %s", to)
		}
	}

	first.ready.Store(false)
	second.ready.Store(false)
	waitReady(t, front, 0)

	if to := ask(connect()); to != "nobody" {
		t.Errorf("with no replica ready a connection went to %s", to)
	}

	if taken := front.Connections(); taken[0]+taken[1] != 5 {
		t.Errorf("connections %v, want 5", taken)
	}
}

func waitReady(t *testing.T, front *Front, want int) {
	t.Helper()

	for deadline := time.Now().Add(await.Limit); front.Ready() != want; {
		if time.Now().After(deadline) {
			t.Fatalf("%d replicas are ready, want %d", front.Ready(), want)
		}

		time.Sleep(20 * time.Millisecond)
	}
}
