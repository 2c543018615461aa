package omnisim_test

import (
	"bufio"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

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

// TestProxyStreams checks that events of a watch arrive while the answer is still open.
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

// TestProxyUpgrades checks that an upgraded connection, such as that of exec, works in both directions.
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

	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: await.Limit}, Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}

	conn, err := dialer.DialContext(deadline(t), "tcp", strings.TrimPrefix(p.KubernetesProxyURL(), "https://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	_ = conn.SetDeadline(time.Now().Add(await.Limit))

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

// TestProxyGoesDownAndComesBack checks that the proxy has the same address after an outage of Omni, so that kubeconfigs
// stay valid.
func TestProxyGoesDownAndComesBack(t *testing.T) {
	p := newProxied(t)
	p.attach(func(http.ResponseWriter, *http.Request) {})

	server, token := p.kubeconfig("robot", "g")

	p.GoDown()

	if response, err := p.client.Get(server + "/api"); err == nil { // the client has a timeout
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
