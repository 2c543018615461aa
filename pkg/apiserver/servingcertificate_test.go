package apiserver

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
)

func TestCertificateProblem(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	unusable := errors.New("tls: private key does not match public key")

	for _, tc := range []struct {
		name      string
		from, to  time.Duration // of its validity, from now
		unusable  error
		want      []string
		wantsNone bool
	}{
		{name: "new", from: -time.Hour, to: 90 * 24 * time.Hour, wantsNone: true},
		{name: "old, but to be renewed soon", from: -61 * 24 * time.Hour, to: 29 * 24 * time.Hour, wantsNone: true},
		{name: "not renewed", from: -85 * 24 * time.Hour, to: 5 * 24 * time.Hour, want: []string{"it expires at 2026-11-26T12:00:00Z, and nobody has renewed it", "cert-manager"}},
		{name: "short lived", from: -30 * time.Minute, to: 30 * time.Minute, wantsNone: true},
		{name: "expired", from: -2 * time.Hour, to: -time.Hour, want: []string{
			"it expired at 2026-11-21T11:00:00Z", "accepts it for no new connection", "restart neither", "omni-apiserver-tls",
		}},
		{name: "not yet valid", from: time.Hour, to: 2 * time.Hour, want: []string{"it is valid from 2026-11-21T13:00:00Z only, and here it is 2026-11-21T12:00:00Z", "clocks"}},
		{name: "unusable", from: -time.Hour, to: time.Hour, unusable: unusable, want: []string{
			"cannot be served (tls: private key does not match public key), so the one from before is, until 2026-11-21T13:00:00Z",
		}},
		{name: "expired and unusable", from: -2 * time.Hour, to: -time.Hour, unusable: unusable, want: []string{"it expired at", "private key does not match"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := certificateProblem(now, &x509.Certificate{NotBefore: now.Add(tc.from), NotAfter: now.Add(tc.to)}, tc.unusable)
			if (got == "") != tc.wantsNone {
				t.Errorf("got %q", got)
			}

			for _, text := range tc.want {
				if !strings.Contains(got, text) {
					t.Errorf("got %q, want %q in it", got, text)
				}
			}
		})
	}
}

// newPair makes a certificate that is valid for so long, and its key, as PEM.
func newPair(t *testing.T, serial int64, valid time.Duration) (certificate, key []byte) {
	t.Helper()

	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), DNSNames: []string{"omni-apiserver.apps.svc"},
		NotBefore: time.Now().Add(-time.Second), NotAfter: time.Now().Add(valid),
	}

	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}

	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}

	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
}

func TestTellServingCertificate(t *testing.T) {
	said, logger := newLog()
	dir := t.TempDir()

	// Replaces the files as kubelet and certbot do: the names stay, and lead to other files.
	files := ServingFiles{Certificate: filepath.Join(dir, "data", "tls.crt"), Key: filepath.Join(dir, "data", "tls.key")}
	links := 0
	put := func(certificate, key []byte) {
		links++
		version := filepath.Join(dir, strconv.Itoa(links))

		if err := errors.Join(
			os.Mkdir(version, 0o700),
			os.WriteFile(filepath.Join(version, "tls.crt"), certificate, 0o600),
			os.WriteFile(filepath.Join(version, "tls.key"), key, 0o600),
			os.Symlink(version, filepath.Join(dir, "next")),
			os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "data")),
		); err != nil {
			t.Fatal(err)
		}
	}

	put(newPair(t, 0, time.Hour))

	// It has goroutines that would keep a bubble from ending.
	content, err := dynamiccertificates.NewDynamicServingContentFromFiles("test", files.Certificate, files.Key)
	if err != nil {
		t.Fatal(err)
	}

	synctest.Test(t, func(t *testing.T) {
		expect := func(after time.Duration, texts ...string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()

			if got := strings.Count(said.String(), "\n"); got != len(texts) {
				t.Errorf("%d lines, want %d:\n%s", got, len(texts), said)
			}

			for _, text := range texts {
				if strings.Count(said.String(), text) != 1 {
					t.Errorf("not once %q in the log:\n%s", text, said)
				}
			}

			said.Reset()
		}

		begin := time.Now()
		first, firstKey := newPair(t, 1, 2*time.Hour)
		put(first, firstKey)

		served := func() []byte {
			certificate, _ := content.CurrentCertKeyContent()

			return certificate
		}
		begins, expires := 0.0, 0.0
		teller := &certificateTeller{
			files: files, reload: content.RunOnce, served: served,
			begins: func(at float64) { begins = at }, expires: func(at float64) { expires = at },
		}

		go teller.run(klog.NewContext(t.Context(), logger))

		expect(time.Second, `"Serving this certificate" file="`+files.Certificate+`" names="omni-apiserver.apps.svc"`)

		if begins == 0 || begins >= expires {
			t.Errorf("valid from %f, want a time before %f", begins, expires)
		}

		if want := float64(begin.Add(2 * time.Hour).Unix()); expires != want {
			t.Errorf("expires %f, want %f", expires, want)
		}

		// Files that fit together again after a moment are no problem.
		second, secondKey := newPair(t, 2, 4*time.Hour)
		put(second, firstKey)
		time.AfterFunc(certificateLook+2*time.Second, func() { put(second, secondKey) })
		expect(certificateLook+certificateSwap, `"Serving this certificate"`)

		if !bytes.Equal(served(), second) {
			t.Error("the new certificate is not served")
		}

		put([]byte("half"), secondKey)
		expect(certificateLook+certificateSwap, "cannot be served (tls: failed to find any PEM data")
		expect(10 * time.Minute)

		if !bytes.Equal(served(), second) {
			t.Error("the certificate from before is not served")
		}

		put(second, secondKey)
		expect(certificateLook+certificateSwap, "is in order again")

		// Nobody renews the certificate: the log says so once shortly before it expires, again each hour, and when it
		// has expired.
		expect(4*time.Hour-time.Since(begin)-time.Minute, "nobody has renewed it")
		expect(3*time.Minute, "accepts it for no new connection")
		expect(time.Hour, "accepts it for no new connection")
	})
}

// The server itself has the hook and the metric.
func TestTellServingCertificateOfServer(t *testing.T) {
	certificate, key := newPair(t, 1, time.Hour)

	content, err := dynamiccertificates.NewStaticCertKeyContent("test", certificate, key)
	if err != nil {
		t.Fatal(err)
	}

	config := &genericapiserver.Config{
		SecureServing:  &genericapiserver.SecureServingInfo{Cert: content},
		PostStartHooks: map[string]genericapiserver.PostStartHookConfigEntry{}, DisabledPostStartHooks: nil,
	}

	var registered []string

	register := func(metric metrics.Registerable) error {
		registered = append(registered, metric.FQName())

		return nil
	}
	if err := TellServingCertificate(config, ServingFiles{}, register); err != nil {
		t.Fatal(err)
	}

	if want := []string{
		"omni_apiserver_serving_certificate_not_before_timestamp_seconds", "omni_apiserver_serving_certificate_expiration_timestamp_seconds",
	}; !slices.Equal(registered, want) {
		t.Errorf("metrics %v", registered)
	}

	if _, there := config.PostStartHooks["tell-serving-certificate"]; !there || len(config.PostStartHooks) != 1 {
		t.Errorf("hooks %v", config.PostStartHooks)
	}

	if err := TellServingCertificate(config, ServingFiles{}, func(metrics.Registerable) error { return errors.New("duplicate") }); err == nil {
		t.Error("a metric that cannot be registered is no error")
	}
}
