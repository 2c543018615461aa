package env

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
)

func TestIssue(t *testing.T) {
	ca, err := newAuthority("test-ca")
	if err != nil {
		t.Fatal(err)
	}

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.certPEM)

	tests := []struct {
		name   string
		leaf   leaf
		verify x509.VerifyOptions
		usage  x509.ExtKeyUsage
	}{
		{
			"client", leaf{commonName: "alice", organizations: []string{"admins", "shoppers"}},
			x509.VerifyOptions{}, x509.ExtKeyUsageClientAuth,
		},
		{
			"server", leaf{commonName: "server", dnsNames: []string{"a.b.svc"}, addresses: []net.IP{net.ParseIP("127.0.0.1")}},
			x509.VerifyOptions{DNSName: "a.b.svc"}, x509.ExtKeyUsageServerAuth,
		},
	}

	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			pair, err := ca.issue(test.leaf)
			if err != nil {
				t.Fatal(err)
			}

			if _, err := tls.X509KeyPair(pair.cert, pair.key); err != nil {
				t.Fatalf("certificate and key do not belong together: %v", err)
			}

			block, _ := pem.Decode(pair.cert)
			cert, err := x509.ParseCertificate(block.Bytes)

			if err != nil {
				t.Fatal(err)
			}

			test.verify.Roots = roots
			test.verify.KeyUsages = []x509.ExtKeyUsage{test.usage}

			if _, err := cert.Verify(test.verify); err != nil {
				t.Error(err)
			}

			if diff := cmp.Diff(test.leaf.organizations, cert.Subject.Organization); diff != "" {
				t.Errorf("organizations (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFrontProxyIsSeparate checks that the cluster's authority does not vouch for the front
// proxy, nor the other way round: mixing them up would let any user be anybody.
func TestFrontProxyIsSeparate(t *testing.T) {
	creds, err := newCredentials(filepath.Join(t.TempDir(), "credentials"))
	if err != nil {
		t.Fatal(err)
	}

	cluster := x509.NewCertPool()
	cluster.AddCert(creds.cluster.cert)

	block, _ := pem.Decode(creds.frontProxyClient.cert)
	cert, err := x509.ParseCertificate(block.Bytes)

	if err != nil {
		t.Fatal(err)
	}

	options := x509.VerifyOptions{Roots: cluster, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := cert.Verify(options); err == nil {
		t.Error("the cluster's authority accepts the front proxy's certificate")
	}

	entries, err := os.ReadDir(creds.dir)
	if err != nil {
		t.Fatal(err)
	}

	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}

		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %s", entry.Name(), info.Mode())
		}
	}
}

func TestWriteKubeconfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := writeKubeconfig(path, "https://127.0.0.1:20443", []byte("ca"), keyPair{cert: []byte("cert"), key: []byte("key")}); err != nil {
		t.Fatal(err)
	}

	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}

	got := []string{config.Host, string(config.CAData), string(config.CertData), string(config.KeyData)}
	if diff := cmp.Diff([]string{"https://127.0.0.1:20443", "ca", "cert", "key"}, got); diff != "" {
		t.Errorf("kubeconfig (-want +got):\n%s", diff)
	}

	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
}
