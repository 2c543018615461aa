package omnisim_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/golang-jwt/jwt/v4"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/siderolabs/omni/client/pkg/client"
	"github.com/siderolabs/omni/client/pkg/client/management"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// proxied is a simulator with one cluster, named a, and a client that trusts its proxy.
type proxied struct {
	*omnisim.Server
	t      *testing.T
	omni   *client.Client
	state  state.State
	client *http.Client
}

func newProxied(t *testing.T) *proxied {
	t.Helper()

	p := &proxied{Server: start(t, omnisim.Options{}), t: t}
	p.omni = connect(t, p.Server, key(t, p.Server, omnisim.RoleOperator))
	p.state = p.omni.Omni().State()

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.CAPEM())
	p.client = &http.Client{
		Timeout:   20 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true},
	}

	p.create()

	return p
}

// create makes the cluster and waits until it has a UUID.
func (p *proxied) create() {
	p.t.Helper()

	if err := p.state.Create(deadline(p.t), testCluster("a")); err != nil {
		p.t.Fatal(err)
	}

	waitFor(deadline(p.t), p.t, p.state, omni.NewClusterUUID("a"), func(*omni.ClusterUUID) bool { return true })
}

// kubeconfig asks for a kubeconfig and returns its server and token.
func (p *proxied) kubeconfig(user string, groups ...string) (server, token string) {
	p.t.Helper()

	raw, err := p.omni.Management().WithCluster("a").Kubeconfig(deadline(p.t), management.WithServiceAccount(time.Hour, user, groups...))
	if err != nil {
		p.t.Fatal(err)
	}

	var config struct {
		Clusters []struct{ Cluster struct{ Server string } }
		Users    []struct{ User struct{ Token string } }
	}

	if err := yaml.Unmarshal(raw, &config); err != nil {
		p.t.Fatal(err)
	}

	return config.Clusters[0].Cluster.Server, config.Users[0].User.Token
}

// ask sends a request with a token and returns status and body.
func (p *proxied) ask(token string, headers http.Header) (int, string) {
	p.t.Helper()

	request, err := http.NewRequestWithContext(deadline(p.t), http.MethodGet, p.KubernetesProxyURL()+"/api?x=1", nil)
	if err != nil {
		p.t.Fatal(err)
	}

	if headers != nil {
		request.Header = headers
	}

	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}

	response, err := p.client.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()

	body, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}

	return response.StatusCode, string(body)
}

// attach serves a stand-in for kube-apiserver, which asks for the proxy's client certificate.
func (p *proxied) attach(handler http.HandlerFunc) {
	p.t.Helper()

	certPEM, keyPEM, pool := clientCertificate(p.t)

	backend := httptest.NewUnstartedServer(handler)
	backend.EnableHTTP2 = true
	backend.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12}
	backend.StartTLS()
	p.t.Cleanup(backend.Close)

	err := p.AttachWorkload("a", omnisim.Workload{
		URL:       backend.URL,
		CA:        pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: backend.Certificate().Raw}),
		ProxyCert: certPEM, ProxyKey: keyPEM,
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

func clientCertificate(t *testing.T) (certPEM, keyPEM []byte, pool *x509.CertPool) {
	t.Helper()

	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "front-proxy-client"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}

	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}

	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}

	certPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)

	return certPEM, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}), pool
}

func TestProxyForwardsTheIdentityOfTheToken(t *testing.T) {
	p := newProxied(t)

	var got http.Header

	p.attach(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		fmt.Fprint(w, r.URL.RequestURI())
	})

	server, token := p.kubeconfig("robot", "deployers", "readers")
	if server != p.KubernetesProxyURL() {
		t.Errorf("the kubeconfig leads to %s, want %s", server, p.KubernetesProxyURL())
	}

	code, body := p.ask(token, http.Header{
		"X-Remote-User":           {"system:admin"},
		"X-Remote-Group":          {"system:masters"},
		"X-Remote-Extra-Scopes":   {"all"},
		"Impersonate-User":        {"system:admin"},
		"Impersonate-Group":       {"system:masters"},
		"Impersonate-Extra-Thing": {"x"},
		"Accept":                  {"application/json"},
	})
	if code != http.StatusOK || body != "/api?x=1" {
		t.Errorf("answer %d %q", code, body)
	}

	for _, name := range []string{"User-Agent", "Accept-Encoding"} {
		got.Del(name)
	}

	want := http.Header{"X-Remote-User": {"robot"}, "X-Remote-Group": {"deployers", "readers"}, "Accept": {"application/json"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers at kube-apiserver (-want +got):\n%s", diff)
	}

	if got := p.KubernetesProxyAnswers(); got[200] != 1 || len(got) != 1 {
		t.Errorf("answers %v", got)
	}
}

func TestProxyRefuses(t *testing.T) {
	p := newProxied(t)
	p.attach(func(http.ResponseWriter, *http.Request) {})

	_, token := p.kubeconfig("robot", "deployers")
	_, groupless := p.kubeconfig("robot")

	foreign, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}

	claims := jwt.MapClaims{
		"sub": "robot", "groups": []string{"g"}, "cluster": "a", "cluster_uuid": "x", "exp": time.Now().Add(time.Hour).Unix(),
	}

	forged, err := jwt.NewWithClaims(jwt.SigningMethodRS256, claims).SignedString(foreign)
	if err != nil {
		t.Fatal(err)
	}

	symmetric, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(x509.MarshalPKCS1PublicKey(p.TokenPublicKey()))
	if err != nil {
		t.Fatal(err)
	}

	for name, token := range map[string]string{
		"none": "", "no token": "rubbish", "another key": forged, "another algorithm": symmetric, "no groups": groupless,
		"cut": token[:len(token)-8],
	} {
		if code, _ := p.ask(token, nil); code != http.StatusUnauthorized {
			t.Errorf("%s: %d, want 401", name, code)
		}
	}

	if code, _ := p.ask(token, nil); code != http.StatusOK {
		t.Fatalf("a good token: %d", code)
	}

	p.DetachWorkload("a")

	if code, _ := p.ask(token, nil); code != http.StatusBadGateway {
		t.Errorf("without a healthy API: %d, want 502", code)
	}

	if _, err := p.state.Teardown(deadline(t), omni.NewCluster("a").Metadata()); err != nil {
		t.Fatal(err)
	}

	waitGone(deadline(t), t, p.state, omni.NewClusterUUID("a").Metadata())
	waitGone(deadline(t), t, p.state, omni.NewCluster("a").Metadata())

	if code, _ := p.ask(token, nil); code != http.StatusInternalServerError {
		t.Errorf("cluster gone: %d, want 500", code)
	}

	p.create()

	if code, _ := p.ask(token, nil); code != http.StatusForbidden {
		t.Errorf("cluster recreated: %d, want 403", code)
	}
}

func TestProxyWithoutItsBackend(t *testing.T) {
	p := newProxied(t)
	certPEM, keyPEM, _ := clientCertificate(t)

	err := p.AttachWorkload("a", omnisim.Workload{URL: "https://127.0.0.1:1", CA: p.CAPEM(), ProxyCert: certPEM, ProxyKey: keyPEM})
	if err != nil {
		t.Fatal(err)
	}

	_, token := p.kubeconfig("robot", "g")
	if code, _ := p.ask(token, nil); code != http.StatusBadGateway {
		t.Errorf("answer %d, want 502", code)
	}

	for name, workload := range map[string]omnisim.Workload{
		"no URL":  {CA: p.CAPEM(), ProxyCert: certPEM, ProxyKey: keyPEM},
		"http":    {URL: "http://127.0.0.1:1", CA: p.CAPEM(), ProxyCert: certPEM, ProxyKey: keyPEM},
		"no CA":   {URL: "https://127.0.0.1:1", ProxyCert: certPEM, ProxyKey: keyPEM},
		"no cert": {URL: "https://127.0.0.1:1", CA: p.CAPEM()},
	} {
		if err := p.AttachWorkload("a", workload); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// Events of a watch arrive while the answer goes on.
func TestProxyStreams(t *testing.T) {
	p := newProxied(t)
	goOn := make(chan struct{})

	p.attach(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "first")
		_ = http.NewResponseController(w).Flush()
		<-goOn
		fmt.Fprintln(w, "second")
	})

	_, token := p.kubeconfig("robot", "g")

	request, err := http.NewRequestWithContext(deadline(t), http.MethodGet, p.KubernetesProxyURL()+"/watch", nil)
	if err != nil {
		t.Fatal(err)
	}

	request.Header.Set("Authorization", "Bearer "+token)

	response, err := p.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()

	lines := bufio.NewScanner(response.Body)
	if !lines.Scan() || lines.Text() != "first" {
		t.Fatalf("got %q before the end", lines.Text())
	}

	close(goOn)

	if !lines.Scan() || lines.Text() != "second" {
		t.Errorf("got %q", lines.Text())
	}
}

// An upgraded connection, as exec uses, is handed over in both directions.
func TestProxyUpgrades(t *testing.T) {
	p := newProxied(t)

	p.attach(func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()

		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")

		line, _ := buffered.ReadString('\n')
		fmt.Fprint(conn, strings.ToUpper(line))
	})

	_, token := p.kubeconfig("robot", "g")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.CAPEM())

	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second}, Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}

	conn, err := dialer.DialContext(deadline(t), "tcp", strings.TrimPrefix(p.KubernetesProxyURL(), "https://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))

	fmt.Fprintf(conn, "POST /exec HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n", token)

	reader := bufio.NewReader(conn)

	response, err := http.ReadResponse(reader, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("answer %+v, %v", response, err)
	}

	fmt.Fprint(conn, "hello\n")

	if line, err := reader.ReadString('\n'); err != nil || line != "HELLO\n" {
		t.Errorf("echo %q, %v", line, err)
	}
}

// Whoever holds a kubeconfig finds the proxy at the same place after a fall of Omni.
func TestProxyGoesDownAndComesBack(t *testing.T) {
	p := newProxied(t)
	p.attach(func(http.ResponseWriter, *http.Request) {})

	server, token := p.kubeconfig("robot", "g")

	p.GoDown()

	if response, err := p.client.Get(server + "/api"); err == nil { //nolint:noctx // the client has a timeout
		response.Body.Close()
		t.Error("the proxy answers while Omni is down")
	}

	if err := p.ComeBack(); err != nil {
		t.Fatal(err)
	}

	if code, _ := p.ask(token, nil); code != http.StatusOK || p.KubernetesProxyURL() != server {
		t.Errorf("answer %d at %s", code, p.KubernetesProxyURL())
	}
}
