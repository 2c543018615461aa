package startup

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/test/etcdtest"
)

// nobody is an endpoint where nothing listens.
const nobody = "http://127.0.0.1:1"

func TestWaitForEtcd(t *testing.T) {
	etcd := etcdtest.Start(t, t.TempDir())

	// One member of two is enough to begin.
	if err := WaitForEtcd(t.Context(), EtcdTarget{Endpoints: []string{nobody, etcd.Endpoint()}}, "/omni-apiserver"); err != nil {
		t.Error(err)
	}
}

func TestWaitForEtcdSaysWhatIsWrong(t *testing.T) {
	plain := httptest.NewTLSServer(nil)
	t.Cleanup(plain.Close)

	strict := httptest.NewUnstartedServer(nil)
	strict.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	strict.StartTLS()
	t.Cleanup(strict.Close)

	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}

		return path
	}
	ca := write("ca.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: plain.Certificate().Raw}))
	text := write("text", []byte("no certificate"))

	for _, tc := range []struct {
		name      string
		etcd      EtcdTarget
		want      string
		permanent bool
	}{
		{"nobody there", EtcdTarget{Endpoints: []string{nobody}}, "no connection to etcd at " + nobody + ": dial tcp 127.0.0.1:1: connect: connection refused", false},
		{"no such host", EtcdTarget{Endpoints: []string{"https://etcd-0.invalid:2379"}}, "no connection to etcd at https://etcd-0.invalid:2379: dial tcp: lookup", false},
		{"another authority", EtcdTarget{Endpoints: []string{plain.URL}}, "is not trusted, or does not speak TLS (--etcd-cafile): tls: failed to verify certificate", false},
		{"no certificate of ours", EtcdTarget{Endpoints: []string{strict.URL}, CAFile: ca}, "does not accept us (--etcd-certfile, --etcd-keyfile): remote error: tls: certificate required", false},
		{"no such file", EtcdTarget{Endpoints: []string{plain.URL}, CAFile: "/nonexistent/ca.crt"}, "--etcd-cafile: open /nonexistent/ca.crt", true},
		{"no certificate in it", EtcdTarget{Endpoints: []string{plain.URL}, CAFile: text}, "text has no certificate in PEM format", true},
		{"no pair", EtcdTarget{Endpoints: []string{plain.URL}, CertFile: ca, KeyFile: text}, "--etcd-certfile and --etcd-keyfile: tls: failed to find any PEM data in key input", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()

			err := askEtcd(t.Context(), tc.etcd, "/omni-apiserver/health")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q in it", err, tc.want)
			}

			if got := errors.As(err, &permanentError{}); got != tc.permanent {
				t.Errorf("permanent: %t", got)
			}
		})
	}
}

func TestMemberAddress(t *testing.T) {
	type address struct {
		network, address string
		secured          bool
	}

	for _, tc := range []struct {
		endpoint     string
		certificates bool
		want         address
	}{
		{"https://etcd-0.etcd:2379", true, address{"tcp", "etcd-0.etcd:2379", true}},
		{"https://etcd-0.etcd:2379/", false, address{"tcp", "etcd-0.etcd:2379", true}},
		{"http://127.0.0.1:2379", true, address{"tcp", "127.0.0.1:2379", false}},
		{"etcd-0.etcd:2379", true, address{"tcp", "etcd-0.etcd:2379", true}},
		{"127.0.0.1:2379", false, address{"tcp", "127.0.0.1:2379", false}},
		{"[::1]:2379", false, address{"tcp", "[::1]:2379", false}},
		{"unix:///var/lib/etcd.sock", false, address{"unix", "/var/lib/etcd.sock", false}},
		{"unixs://etcd.sock", false, address{"unix", "etcd.sock", true}},
	} {
		var got address
		if got.network, got.address, got.secured = memberAddress(tc.endpoint, tc.certificates); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.endpoint, got, tc.want)
		}
	}
}

// An endpoint without a scheme is as good.
func TestWaitForEtcdWithoutScheme(t *testing.T) {
	if err := askEtcd(t.Context(), EtcdTarget{Endpoints: []string{"127.0.0.1:1"}}, "/health"); err == nil || errors.As(err, &permanentError{}) ||
		!strings.Contains(err.Error(), "no connection to etcd at 127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused") {
		t.Error(err)
	}
}
