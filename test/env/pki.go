package env

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

const (
	loopback = "127.0.0.1"

	// certificateLifetime outlasts a "make up" that somebody forgot over a holiday.
	certificateLifetime = 30 * 24 * time.Hour

	// clockSkew lets a certificate be used by a process whose clock reading is a little older.
	clockSkew = time.Minute
)

// authority is a certificate authority that lives as long as one hub.
type authority struct {
	cert    *x509.Certificate
	key     *ecdsa.PrivateKey
	certPEM []byte
}

// leaf describes a certificate to issue. Without names it is a client certificate,
// otherwise a serving one, and with both it is either, as members of a cluster need.
type leaf struct {
	commonName    string
	organizations []string
	dnsNames      []string
	addresses     []net.IP
	both          bool
}

// keyPair is a certificate and its private key, both as PEM.
type keyPair struct{ cert, key []byte }

func newAuthority(commonName string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key of %s: %w", commonName, err)
	}

	template, err := certificateTemplate(pkix.Name{CommonName: commonName})
	if err != nil {
		return nil, err
	}

	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature

	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("create certificate of %s: %w", commonName, err)
	}

	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parse certificate of %s: %w", commonName, err)
	}

	return &authority{cert: cert, key: key, certPEM: encodePEM("CERTIFICATE", der)}, nil
}

// issue signs a certificate for a new key.
func (a *authority) issue(l leaf) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("generate key of %s: %w", l.commonName, err)
	}

	template, err := certificateTemplate(pkix.Name{CommonName: l.commonName, Organization: l.organizations})
	if err != nil {
		return keyPair{}, err
	}

	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	template.DNSNames, template.IPAddresses = l.dnsNames, l.addresses

	if len(l.dnsNames)+len(l.addresses) > 0 {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}

	if l.both {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}

	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return keyPair{}, fmt.Errorf("create certificate of %s: %w", l.commonName, err)
	}

	keyPEM, err := encodeKey(key)
	if err != nil {
		return keyPair{}, err
	}

	return keyPair{cert: encodePEM("CERTIFICATE", der), key: keyPEM}, nil
}

func certificateTemplate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("draw serial number: %w", err)
	}

	now := time.Now()

	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-clockSkew),
		NotAfter:     now.Add(certificateLifetime),
	}, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode private key: %w", err)
	}

	return encodePEM("EC PRIVATE KEY", der), nil
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
