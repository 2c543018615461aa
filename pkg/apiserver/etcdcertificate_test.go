package apiserver_test

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"net"
	"path/filepath"
	"sync"
	"testing"

	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/util/cert"

	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/etcdtest"
)

// TestEtcdClientCertificateIsReadAgain: client certificates for an external etcd are renewed on disk. New connections
// use the certificate that is on disk now; existing connections go on.
func TestEtcdClientCertificateIsReadAgain(t *testing.T) {
	first, second := newIdentity(t), newIdentity(t)
	shown := &shownCertificate{}
	r := newSecuredRelay(t, first, shown)

	dir := t.TempDir()
	certificate, key, ca := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt")
	writeFile(t, ca, string(first.certificate))
	first.write(t, certificate, key)

	s := startServer(t, onEtcd(etcdtest.Start(t, t.TempDir()).Endpoint()), withStorage(func(o *genericoptions.EtcdOptions) {
		r.between(o)

		transport := &o.StorageConfig.Transport
		transport.TrustedCAFile, transport.CertFile, transport.KeyFile = ca, certificate, key
	}))
	s.make(t, "before")

	if !shown.is(first) {
		t.Error("the first connection does not show the first certificate")
	}

	second.write(t, certificate, key)
	s.make(t, "between")

	if !shown.is(first) {
		t.Error("the connections from before did not go on")
	}

	r.cut()
	await.Until(t, "a connection with the second certificate", func() bool { return shown.is(second) })
	s.make(t, "after")
}

// identity is a certificate that is its own authority, and its key, both as PEM.
type identity struct{ certificate, key []byte }

func newIdentity(t *testing.T) identity {
	t.Helper()

	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}

	return identity{certificate, key}
}

func (i identity) write(t *testing.T, certificate, key string) {
	t.Helper()
	writeFile(t, certificate, string(i.certificate))
	writeFile(t, key, string(i.key))
}

// shownCertificate is the one that the client of the last connection showed.
type shownCertificate struct {
	mu  sync.Mutex
	raw []byte
}

func (c *shownCertificate) note(state tls.ConnectionState) error {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.raw = state.PeerCertificates[0].Raw

	return nil
}

func (c *shownCertificate) is(i identity) bool {
	block, _ := pem.Decode(i.certificate)

	c.mu.Lock()
	defer c.mu.Unlock()

	return bytes.Equal(c.raw, block.Bytes)
}

// newSecuredRelay makes a relay that speaks TLS with its clients and wants certificates of them.
func newSecuredRelay(t *testing.T, server identity, shown *shownCertificate) *relay {
	t.Helper()

	pair, err := tls.X509KeyPair(server.certificate, server.key)
	if err != nil {
		t.Fatal(err)
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	return relayOn(t, "https://"+listener.Addr().String(), tls.NewListener(listener, &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert, VerifyConnection: shown.note,
		NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12,
	}))
}
