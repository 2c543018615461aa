package durability

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

const (
	// stopDelay is how long a stop is delayed in these tests: long enough for a request in it on a busy machine.
	stopDelay = 10 * time.Second
	// refusal is how long the end of the delay may be away. It is less than the 20 seconds more after which the server
	// gives up waiting for what is under way.
	refusal = 15 * time.Second
)

const objects = "/apis/omni.texashpc.com/v1alpha1/namespaces/default/omniworkers"

// TestOneServer is what concerns the process itself, whatever its storage: certificates that change, and a stop.
func TestOneServer(t *testing.T) {
	hub := newHub(t)

	server, err := hub.StartOmniAPIServer(t.Context(), env.OmniAPIServerOptions{
		Binary: *apiServer, Args: []string{"--shutdown-delay-duration=" + stopDelay.String()},
	})
	if err != nil {
		t.Fatal(err)
	}

	t.Run("serving certificate", func(t *testing.T) { testServingCertificate(t, hub, server) })
	t.Run("front proxy and client authorities", func(t *testing.T) { testAuthorities(t, hub, server) })
	t.Run("order of a stop", func(t *testing.T) { testStop(t, server) })
}

// A new certificate on disk is served to new connections, and the old ones go on.
func testServingCertificate(t *testing.T, hub *env.Hub, server *env.OmniAPIServer) {
	before := served(t, hub, server)
	process := server.ProcessID()

	if err := hub.RenewServingCertificate(); err != nil {
		t.Fatal(err)
	}

	begin := time.Now()

	if err := env.Eventually(t.Context(), eventually, "the new certificate", func(context.Context) error {
		if served(t, hub, server) == before {
			return errors.New("the old one is served")
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	t.Logf("served after %s", time.Since(begin).Round(10*time.Millisecond))

	if _, _, err := hub.Kubectl(t.Context(), "get", "omniworkers"); err != nil || server.ProcessID() != process {
		t.Errorf("through kube-apiserver: %v; process %d, was %d", err, server.ProcessID(), process)
	}
}

// served is the serial number of the certificate that a new connection gets.
func served(t *testing.T, hub *env.Hub, server *env.OmniAPIServer) string {
	t.Helper()

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(hub.CA())

	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: requestTimeout}, Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}

	conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(server.URL(), "https://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	secure, ok := conn.(*tls.Conn)
	if !ok {
		t.Fatalf("connection is %T", conn)
	}

	return secure.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// A hub that gets a new authority for its front proxy, or for its users, publishes it in a ConfigMap: what it signs is
// believed soon, and what the old one signed still is.
func testAuthorities(t *testing.T, hub *env.Hub, server *env.OmniAPIServer) {
	frontProxy, err := hub.AddFrontProxyAuthority()
	if err != nil {
		t.Fatal(err)
	}

	user, err := hub.AddClientAuthority("rotated-admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}

	old, err := tls.X509KeyPair(hub.FrontProxyClient())
	if err != nil {
		t.Fatal(err)
	}

	asAdmin := http.Header{"X-Remote-User": {"joe"}, "X-Remote-Group": {"system:masters"}}

	for _, tc := range []struct {
		name        string
		certificate tls.Certificate
		header      http.Header
	}{
		{"a front proxy of the new authority", frontProxy, asAdmin},
		{"a front proxy of the old authority", old, asAdmin},
		{"a user of the new authority", user, nil},
	} {
		begin := time.Now()

		if err := env.Eventually(t.Context(), eventually, tc.name+" to be believed", func(ctx context.Context) error {
			answer, err := request(ctx, client(hub, tc.certificate), http.MethodGet, server.URL()+objects, nil, tc.header)
			if err == nil && answer.StatusCode != http.StatusOK {
				err = errors.New(answer.Status)
			}

			return err
		}); err != nil {
			t.Error(err)
		}

		t.Logf("%s: after %s", tc.name, time.Since(begin).Round(10*time.Millisecond))
	}
}

func client(hub *env.Hub, certificates ...tls.Certificate) *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(hub.CA())

	return &http.Client{Timeout: requestTimeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: certificates, MinVersion: tls.VersionTLS12},
	}}
}

// request sends a request and reads the answer to its end.
func request(ctx context.Context, client *http.Client, method, url string, body io.Reader, header http.Header) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}

	for key, values := range header {
		request.Header[key] = values
	}

	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()

	_, err = io.Copy(io.Discard, answer.Body)

	return answer, err
}

// After SIGTERM /readyz fails and requests are served; after the delay new ones are not, the one under way is finished,
// and watches end cleanly. What was answered last is stored: the etcd inside goes after everything else.
func testStop(t *testing.T, server *env.OmniAPIServer) {
	workers := clientset(t, server.RESTConfig()).OmniWorkers(metav1.NamespaceDefault)

	stream, err := workers.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Stop()

	finish, created := slowCreate(t, server, "slow")
	stopped, begin := make(chan error, 1), time.Now()

	go func() { stopped <- server.Stop() }()

	if err := env.Eventually(t.Context(), eventually, "readyz to fail", func(ctx context.Context) error {
		if server.Ready(ctx) == nil {
			return errors.New("it passes")
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	if _, err := workers.Create(t.Context(), newWorkers("in-the-delay", 1), metav1.CreateOptions{}); err != nil {
		t.Errorf("a request while the stop is delayed: %v", err)
	}

	// The delay ends: nothing new is taken, although a request is still under way.
	if err := env.Eventually(t.Context(), refusal, "new requests to be refused", func(ctx context.Context) error {
		if _, err := workers.List(ctx, metav1.ListOptions{}); err == nil {
			return errors.New("they are served")
		}

		return nil
	}); err != nil {
		t.Error(err)
	}

	if early := time.Since(begin); early < stopDelay {
		t.Errorf("requests are refused after %s, within the delay", early)
	}

	finish()

	if err := <-created; err != nil {
		t.Errorf("the request that was under way: %v", err)
	}

	for event := range stream.ResultChan() {
		if event.Type == "ERROR" {
			t.Errorf("the watch ended with %+v", event.Object)
		}
	}

	if err := <-stopped; err != nil {
		t.Fatal(err)
	}

	if err := server.RestartDirectly(t.Context()); err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{"in-the-delay", "slow"} {
		if _, err := clientset(t, server.RESTConfig()).OmniWorkers(metav1.NamespaceDefault).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
}

// slowCreate sends an object but for its last byte, on a connection of its own. Then finish sends the rest.
func slowCreate(t *testing.T, server *env.OmniAPIServer, name string) (finish func(), created <-chan error) {
	t.Helper()

	config := server.RESTConfig()

	certificate, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		t.Fatal(err)
	}

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.CAData)

	object := newWorkers(name, 1)
	object.APIVersion, object.Kind = "omni.texashpc.com/v1alpha1", "OmniWorkers"

	body, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}

	reader, writer := io.Pipe()
	result := make(chan error, 1)
	sender := &http.Client{Timeout: eventually, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	}}

	go func() {
		answer, err := request(t.Context(), sender, http.MethodPost, server.URL()+objects, reader, http.Header{
			"Content-Type": {"application/json"}, "X-Remote-User": {"hub-admin"}, "X-Remote-Group": {"system:masters"},
		})
		if err == nil && answer.StatusCode != http.StatusCreated {
			err = fmt.Errorf("answered with %s", answer.Status)
		}

		result <- err
	}()

	last := len(body) - 1
	if _, err := io.Copy(writer, bytes.NewReader(body[:last])); err != nil {
		t.Fatal(err)
	}

	pause(t.Context(), time.Second) // for the server to have begun with it

	return func() {
		_, _ = writer.Write(body[last:]) // an error shows in the answer
		_ = writer.Close()
	}, result
}
