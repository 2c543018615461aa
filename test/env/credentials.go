package env

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

const (
	// adminUser and adminGroup are the identity of the hub's administrator;
	// system:masters passes every authorisation check.
	adminUser  = "hub-admin"
	adminGroup = "system:masters"

	// frontProxyName is the only client certificate name from which API servers accept
	// X-Remote-* headers.
	frontProxyName = "front-proxy-client"
)

// credentials is all key material of one hub. The front proxy has an authority of its own,
// as upstream demands: whoever holds one of its certificates can be anybody.
type credentials struct {
	dir        string
	cluster    *authority
	frontProxy *authority

	admin            keyPair
	frontProxyClient keyPair
}

// newCredentials makes the key material and writes what processes read from files into dir.
func newCredentials(dir string) (*credentials, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of credentials: %w", err)
	}

	c := &credentials{dir: dir}

	var err error
	if c.cluster, err = newAuthority("hub-ca"); err != nil {
		return nil, err
	}

	if c.frontProxy, err = newAuthority("hub-front-proxy-ca"); err != nil {
		return nil, err
	}

	if c.admin, err = c.cluster.issue(leaf{commonName: adminUser, organizations: []string{adminGroup}}); err != nil {
		return nil, err
	}

	if c.frontProxyClient, err = c.frontProxy.issue(leaf{commonName: frontProxyName}); err != nil {
		return nil, err
	}

	return c, c.writeAll()
}

func (c *credentials) writeAll() error {
	serving := leaf{
		commonName: "kube-apiserver",
		dnsNames:   []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		addresses:  []net.IP{net.ParseIP(loopback)},
	}

	return errors.Join(
		c.writeFile("ca.crt", c.cluster.certPEM),
		c.writeFile("front-proxy-ca.crt", c.frontProxy.certPEM),
		c.writePair("front-proxy-client", c.frontProxyClient),
		c.issueFiles("kube-apiserver", serving),
		c.issueFiles("etcd", leaf{commonName: "etcd", addresses: serving.addresses}),
		c.issueFiles("etcd-client", leaf{commonName: "kube-apiserver-etcd-client"}),
		c.writeServiceAccountKey(),
	)
}

// file returns the path of a file with key material.
func (c *credentials) file(name string) string { return filepath.Join(c.dir, name) }

// issueFiles issues a certificate of the cluster's authority into <name>.crt and <name>.key.
func (c *credentials) issueFiles(name string, l leaf) error {
	pair, err := c.cluster.issue(l)
	if err != nil {
		return err
	}

	return c.writePair(name, pair)
}

func (c *credentials) writePair(name string, pair keyPair) error {
	return errors.Join(c.writeFile(name+".crt", pair.cert), c.writeFile(name+".key", pair.key))
}

func (c *credentials) writeFile(name string, content []byte) error {
	if err := replaceFile(c.file(name), content); err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}

	return nil
}

// writeServiceAccountKey writes the key that signs service account tokens, and its public half.
func (c *credentials) writeServiceAccountKey() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generate service account key: %w", err)
	}

	private, err := encodeKey(key)
	if err != nil {
		return err
	}

	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("encode service account key: %w", err)
	}

	return errors.Join(
		c.writeFile("service-account.key", private),
		c.writeFile("service-account.pub", encodePEM("PUBLIC KEY", public)),
	)
}
