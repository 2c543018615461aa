package apiserver_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

const frontProxyName = "front-proxy-client"

// authority issues client certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// newAuthority makes an authority; issue makes certificates of it.
func newAuthority(t *testing.T, name string) authority {
	t.Helper()

	certificate, key := apiserver.Signed(t, name, nil, nil)

	return authority{certificate, key}
}

func (a authority) issue(t *testing.T, name string) tls.Certificate {
	t.Helper()

	certificate, key := apiserver.Signed(t, name, a.certificate, a.key)

	return tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}
}

// proxied is a server whose front proxy has an authority, and whose reviews of tokens never end.
type proxied struct {
	*running
	proxies authority
}

func runProxied(t *testing.T) *proxied {
	t.Helper()

	p := &proxied{proxies: newAuthority(t, "front-proxy-ca")}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.proxies.certificate.Raw})

	content, err := dynamiccertificates.NewStaticCAContent("front proxy", text)
	if err != nil {
		t.Fatal(err)
	}

	p.running = runServerWith(t, func(config *apiserver.Config) {
		generic := &config.Generic.Config
		generic.SecureServing.ClientCA = content
		generic.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
		generic.Authentication.RequestHeaderConfig = &authenticatorfactory.RequestHeaderConfig{
			UsernameHeaders: headerrequest.StaticStringSlice{"X-Remote-User"}, UIDHeaders: headerrequest.StaticStringSlice{"X-Remote-Uid"},
			GroupHeaders: headerrequest.StaticStringSlice{"X-Remote-Group"}, ExtraHeaderPrefixes: headerrequest.StaticStringSlice{"X-Remote-Extra-"},
			CAContentProvider: content, AllowedClientNames: headerrequest.StaticStringSlice{frontProxyName},
		}
		generic.Authentication.Authenticator = authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
			if strings.HasPrefix(r.Header.Get("Authorization"), "Bearer random") {
				<-r.Context().Done() // as a TokenReview that hangs

				return nil, false, r.Context().Err()
			}

			if strings.HasPrefix(r.Header.Get("Authorization"), "Bearer wrong") {
				return nil, false, errors.New("unknown token")
			}

			return &authenticator.Response{User: &user.DefaultInfo{Name: "administrator"}}, true, nil
		})
		apiserver.RememberFrontProxy(&generic.Authentication)
	})

	return p
}

// client presents a certificate, also one that no authority of the server's issued.
func (p *proxied) client(t *testing.T, certificates ...tls.Certificate) *http.Client {
	t.Helper()

	transport := &http.Transport{TLSClientConfig: clientTLS(certificates...), ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)

	return &http.Client{Timeout: await.Limit, Transport: transport}
}

func clientTLS(certificates ...tls.Certificate) *tls.Config {
	return &tls.Config{
		InsecureSkipVerify: true,
		NextProtos:         []string{"h2"},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if len(certificates) == 0 {
				return &tls.Certificate{}, nil
			}

			return &certificates[0], nil
		},
	}
}

// send is one request; without a body for an empty one.
func (p *proxied) send(t *testing.T, client *http.Client, method, path, token, body string) (int, string) {
	t.Helper()

	request, err := http.NewRequestWithContext(t.Context(), method, "https://"+p.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}

	request.Header.Set("Content-Type", jsonBody)
	request.Header.Set("X-Remote-User", "alice")

	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}

	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()

	text, _ := io.ReadAll(response.Body)

	return response.StatusCode, string(text)
}

// TestBodiesOfDirectClients: only who shows a certificate of the front proxy's authorities, with a name that is allowed, may send
// bodies. Everybody else may ask, as probes and scrapers do.
func TestBodiesOfDirectClients(t *testing.T) {
	p := runProxied(t)
	proxy := p.proxies.issue(t, frontProxyName)

	for name, tc := range map[string]struct {
		client *http.Client
		writes int
	}{
		"the front proxy":                         {p.client(t, proxy), http.StatusCreated},
		"no certificate":                          {p.client(t), http.StatusUnauthorized},
		"a certificate that signs itself":         {p.client(t, newAuthority(t, "front-proxy-ca").issue(t, frontProxyName)), http.StatusUnauthorized},
		"the front proxy's authority, a stranger": {p.client(t, p.proxies.issue(t, "kubelet")), http.StatusUnauthorized},
	} {
		body := clusterJSON("c-" + strconv.Itoa(len(name)))

		if status, text := p.send(t, tc.client, http.MethodPost, clusters, "", body); status != tc.writes ||
			status == http.StatusUnauthorized && !strings.Contains(text, "kube-apiserver") {
			t.Errorf("%s writes: status %d, want %d: %.300s", name, status, tc.writes, text)
		}

		for _, path := range []string{clusters, "/readyz", "/metrics"} {
			if status, text := p.send(t, tc.client, http.MethodGet, path, "", ""); status != http.StatusOK {
				t.Errorf("%s reads %s: status %d: %.300s", name, path, status, text)
			}
		}
	}
}

// TestOwnConnectionIsTrusted: this process asks itself by a token of its own, without a certificate.
func TestOwnConnectionIsTrusted(t *testing.T) {
	p := runProxied(t)

	if _, err := p.running.client.OmniV1alpha1().OmniClusters("default").Create(t.Context(), newCluster("own", ""), metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
}

// TestDirectConnectionsHoldLittle: bodies of clients without a certificate of the front proxy do not fill the memory while their
// tokens are reviewed, and kube-apiserver is served meanwhile.
func TestDirectConnectionsHoldLittle(t *testing.T) {
	p := runProxied(t)
	proxy := p.client(t, p.proxies.issue(t, frontProxyName))
	connections := foreigntest.AtOnce(100)

	foreigntest.WantPeak(t, 64<<20, func() {
		ctx, end := context.WithCancel(t.Context())

		var flooding sync.WaitGroup
		defer flooding.Wait()
		defer end()

		body := bytes.Repeat([]byte(" "), foreigntest.Load(250<<10))

		sent := make(chan int, connections)
		for range connections {
			flooding.Go(func() { sent <- p.flood(ctx, t, http.MethodPost, clusters, body) })
		}

		streams := 0
		for range connections {
			streams += <-sent
		}

		t.Logf("%d streams were begun", streams)

		for _, path := range []string{clusters, "/readyz"} {
			if status, text := p.send(t, proxy, http.MethodGet, path, "", ""); status != http.StatusOK {
				t.Errorf("the front proxy reads %s: status %d: %.300s", path, status, text)
			}
		}

		if status, text := p.send(t, proxy, http.MethodPost, clusters, "", clusterJSON("during")); status != http.StatusCreated {
			t.Errorf("the front proxy writes: status %d: %.300s", status, text)
		}
	})
}

// TestManyConnectionsOfTheFrontProxy: kube-apiserver connects anew for each request that finds no free stream, as when hundreds of
// watches begin at the same time. None of these closes another before it has shown its certificate.
func TestManyConnectionsOfTheFrontProxy(t *testing.T) {
	const count = 150 // more than twice what others may have

	p := runProxied(t)
	certificate := p.proxies.issue(t, frontProxyName)

	var connected, asking sync.WaitGroup

	connected.Add(count)

	for range count {
		asking.Go(func() {
			raw, err := net.Dial("tcp", p.address)
			connected.Done()
			connected.Wait()

			if err != nil {
				t.Error(err)

				return
			}

			client := p.client(t, certificate)
			client.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) { return raw, nil }

			if status, text := p.send(t, client, http.MethodGet, "/readyz", "", ""); status != http.StatusOK {
				t.Errorf("status %d: %.300s", status, text)
			}
		})
	}

	asking.Wait()
}

// TestBodiesOfWatchesAreDropped: nobody reads the body of a watch, and HTTP/2 does not keep it for as long as the watch lasts.
func TestBodiesOfWatchesAreDropped(t *testing.T) {
	p := runProxied(t)
	proxy := p.proxies.issue(t, frontProxyName)

	foreigntest.WantPeak(t, 32<<20, func() {
		ctx, end := context.WithCancel(t.Context())
		defer end()

		for range 2 {
			p.flood(ctx, t, http.MethodGet, clusters+"?watch=true", bytes.Repeat([]byte(" "), 250<<10), proxy)
		}

		if status, text := p.send(t, p.client(t, proxy), http.MethodGet, clusters, "", ""); status != http.StatusOK {
			t.Errorf("status %d: %.300s", status, text)
		}
	})
}

// flood opens a connection and begins streams with bodies that do not end. It returns how many it could begin, and leaves the
// connection open until the context ends.
func (p *proxied) flood(ctx context.Context, t *testing.T, method, path string, body []byte, certificates ...tls.Certificate) (begun int) {
	t.Helper()

	const streams = 100

	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: await.Limit}, Config: clientTLS(certificates...)}

	connection, err := dialer.DialContext(ctx, "tcp", p.address)
	if err != nil {
		return 0
	}

	context.AfterFunc(ctx, func() { _ = connection.Close() })

	go func() { _, _ = io.Copy(io.Discard, connection) }()

	_ = connection.SetWriteDeadline(time.Now().Add(2 * time.Second)) // if nobody reads on

	if _, err := io.WriteString(connection, http2.ClientPreface); err != nil {
		return 0
	}

	framer := http2.NewFramer(connection, nil)
	if framer.WriteSettings() != nil {
		return 0
	}

	headers := &bytes.Buffer{}
	encoder := hpack.NewEncoder(headers)

	for i := range streams {
		headers.Reset()

		for _, field := range [][2]string{
			{":method", method}, {":scheme", "https"}, {":authority", p.address}, {":path", path}, {"x-remote-user", "alice"},
			{"authorization", fmt.Sprintf("Bearer random-%d", i)}, {"content-type", jsonBody}, {"content-length", strconv.Itoa(len(body) + 1)},
		} {
			_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}) // a buffer takes all
		}

		id := uint32(2*i + 1)
		if framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: headers.Bytes(), EndHeaders: true}) != nil ||
			framer.WriteData(id, false, body) != nil {
			return i
		}
	}

	return streams
}
