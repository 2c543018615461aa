package omnisim_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/cosi-project/runtime/pkg/state"
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

// create creates the cluster and waits until it has a UUID.
func (p *proxied) create() {
	p.t.Helper()

	if err := p.state.Create(deadline(p.t), testCluster("a")); err != nil {
		p.t.Fatal(err)
	}

	waitFor(deadline(p.t), p.t, p.state, omni.NewClusterUUID("a"), func(*omni.ClusterUUID) bool { return true })
}

// kubeconfig requests a kubeconfig and returns its server and token.
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

// attach serves a stand-in for kube-apiserver, which requires the proxy's client certificate.
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
