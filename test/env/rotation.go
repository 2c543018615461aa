package env

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
)

// RenewServingCertificate replaces certificate and key of omni-apiserver on disk by new ones, as cert-manager does
// before the old ones end.
func (h *Hub) RenewServingCertificate() error { return h.issueServingCertificate() }

// issueServingCertificate makes the certificate of omni-apiserver: kube-apiserver connects to localhost but verifies
// the name of the Service.
func (h *Hub) issueServingCertificate() error {
	return h.creds.issueFiles(apiServerName, leaf{
		commonName: apiServerName,
		dnsNames:   []string{apiServerName + "." + SystemNamespace + ".svc", "localhost"},
		addresses:  []net.IP{net.ParseIP(loopback)},
	})
}

// AddFrontProxyAuthority makes the hub trust a second authority for front proxies, as in the middle of a rotation, and
// returns a client certificate that it signed for the front proxy.
func (h *Hub) AddFrontProxyAuthority() (tls.Certificate, error) {
	return h.addAuthority("front-proxy-ca.crt", leaf{commonName: frontProxyName})
}

// AddClientAuthority makes the hub trust a second authority for users, and returns a client certificate that it signed
// for a user.
func (h *Hub) AddClientAuthority(user string, groups ...string) (tls.Certificate, error) {
	return h.addAuthority("ca.crt", leaf{commonName: user, organizations: groups})
}

// addAuthority appends a new authority to a bundle that processes read.
func (h *Hub) addAuthority(bundle string, l leaf) (tls.Certificate, error) {
	added, err := newAuthority("rotated-" + bundle)
	if err != nil {
		return tls.Certificate{}, err
	}

	before, err := os.ReadFile(h.creds.file(bundle))
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read %s: %w", bundle, err)
	}

	pair, err := added.issue(l)
	if err != nil {
		return tls.Certificate{}, err
	}

	if err := h.creds.writeFile(bundle, bytes.Join([][]byte{before, added.certPEM}, nil)); err != nil {
		return tls.Certificate{}, err
	}

	certificate, err := tls.X509KeyPair(pair.cert, pair.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read client certificate: %w", err)
	}

	return certificate, nil
}

// replaceFile writes a file in one step: processes that follow it never read half of it.
func replaceFile(path string, content []byte) error {
	next := path + ".next"
	if err := os.WriteFile(next, content, 0o600); err != nil {
		return err
	}

	if err := os.Rename(next, path); err != nil {
		return errors.Join(err, os.Remove(next))
	}

	return nil
}
