package validation

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func validConnection() *v1alpha1.OmniConnection {
	return &v1alpha1.OmniConnection{
		ObjectMeta: meta("omni"),
		Spec: v1alpha1.OmniConnectionSpec{
			Endpoint: "https://omni.example.com",
			Auth: v1alpha1.OmniConnectionAuth{
				ServiceAccountSecretRef: v1alpha1.SecretKeyReference{Name: "omni-service-account", Key: "serviceAccountKey"},
			},
		},
	}
}

func TestValidateOmniConnection(t *testing.T) {
	certificate := testCertificate(t)
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("key")})
	broken := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("no certificate")})

	endpoint := func(text string) func(*v1alpha1.OmniConnection) {
		return func(c *v1alpha1.OmniConnection) { c.Spec.Endpoint = text }
	}
	bundle := func(parts ...[]byte) func(*v1alpha1.OmniConnection) {
		return func(c *v1alpha1.OmniConnection) { c.Spec.CABundle = bytes.Join(parts, nil) }
	}

	const badEndpoint = "spec.endpoint: Invalid value"

	checkRules(t, validConnection, ValidateOmniConnection, []row[v1alpha1.OmniConnection]{
		{name: "valid"},
		{"name with a capital", func(c *v1alpha1.OmniConnection) { c.Name = "Omni" }, []string{"metadata.name: Invalid value"}},
		{"no namespace", func(c *v1alpha1.OmniConnection) { c.Namespace = "" }, []string{"metadata.namespace: Required value"}},
		{"endpoint missing", endpoint(""), []string{"spec.endpoint: Required value"}},
		{"endpoint with port and path", endpoint("https://omni.example.com:8443/base"), nil},
		{"plaintext http", endpoint("http://omni.example.com"), nil},
		{"plaintext grpc", endpoint("grpc://omni.example.com:8080"), nil},
		{"IPv6 endpoint", endpoint("https://[::1]:8443"), nil},
		{"other scheme", endpoint("ftp://omni.example.com"), []string{badEndpoint}},
		{"no scheme", endpoint("omni.example.com"), []string{badEndpoint}},
		{"no host", endpoint("https:///base"), []string{badEndpoint}},
		{"port without host", endpoint("https://:443"), []string{badEndpoint}},
		{"port too large", endpoint("https://omni.example.com:70000"), []string{badEndpoint}},
		{"port 0", endpoint("https://omni.example.com:0"), []string{badEndpoint}},
		{"port no number", endpoint("https://omni.example.com:https"), []string{badEndpoint}},
		{"user info", endpoint("https://me:secret@omni.example.com"), []string{badEndpoint}},
		{"query", endpoint("https://omni.example.com?a=b"), []string{badEndpoint}},
		{"empty query", endpoint("https://omni.example.com?"), []string{badEndpoint}},
		{"fragment", endpoint("https://omni.example.com#a"), []string{badEndpoint}},
		{"empty fragment", endpoint("https://omni.example.com#"), []string{badEndpoint}},
		{"opaque", endpoint("https:omni.example.com"), []string{badEndpoint}},
		{"all at once", endpoint("ftp://me@:0?a#b"), []string{badEndpoint, badEndpoint, badEndpoint, badEndpoint, badEndpoint, badEndpoint}},
		{"secret missing", func(c *v1alpha1.OmniConnection) { c.Spec.Auth.ServiceAccountSecretRef.Name = "" },
			[]string{"spec.auth.serviceAccountSecretRef.name: Required value"}},
		{"secret name wrong", func(c *v1alpha1.OmniConnection) { c.Spec.Auth.ServiceAccountSecretRef.Name = "a_b" },
			[]string{"spec.auth.serviceAccountSecretRef.name: Invalid value"}},
		{"secret key wrong", func(c *v1alpha1.OmniConnection) { c.Spec.Auth.ServiceAccountSecretRef.Key = "a/b" },
			[]string{"spec.auth.serviceAccountSecretRef.key: Invalid value"}},
		{"secret key left to the default", func(c *v1alpha1.OmniConnection) { c.Spec.Auth.ServiceAccountSecretRef.Key = "" }, nil},
		{"insecure", func(c *v1alpha1.OmniConnection) { c.Spec.InsecureSkipTLSVerify = true }, nil},
		{"certificate", bundle(certificate), nil},
		{"two certificates and white space", bundle(certificate, []byte("\n# second\n"), certificate, []byte("\n \n")), nil},
		{"no PEM", bundle([]byte("MIIB")), []string{"spec.caBundle: Invalid value"}},
		{"private key", bundle(key), []string{"spec.caBundle: Invalid value"}},
		{"key after the certificate", bundle(certificate, key), []string{"spec.caBundle: Invalid value"}},
		{"broken certificate", bundle(broken), []string{"spec.caBundle: Invalid value"}},
		{"cut off certificate", bundle(certificate, []byte("-----BEGIN CERTIFICATE-----\nMII")), []string{"spec.caBundle: Invalid value"}},
		{"bundle and insecure", func(c *v1alpha1.OmniConnection) {
			c.Spec.CABundle, c.Spec.InsecureSkipTLSVerify = certificate, true
		}, []string{"spec.insecureSkipTLSVerify: Forbidden"}},
	})
}

func TestValidateOmniConnectionUpdate(t *testing.T) {
	checkUpdates(t, validConnection, ValidateOmniConnectionUpdate, []updateRow[v1alpha1.OmniConnection]{
		{name: "nothing changed"},
		{"another endpoint", nil, func(c *v1alpha1.OmniConnection) { c.Spec.Endpoint = "https://other.example.com" }, nil},
		{"bad endpoint", nil, func(c *v1alpha1.OmniConnection) { c.Spec.Endpoint = "other" }, []string{"spec.endpoint: Invalid value"}},
		{"no resource version", nil, func(c *v1alpha1.OmniConnection) { c.ResourceVersion = "" }, []string{"metadata.resourceVersion: Invalid value"}},
		{"bad label", nil, func(c *v1alpha1.OmniConnection) { c.Labels = map[string]string{"a b": ""} }, []string{"metadata.labels: Invalid value"}},
		{"stored under an older rule, label changed",
			func(c *v1alpha1.OmniConnection) { c.Spec.Endpoint = "older rule" },
			func(c *v1alpha1.OmniConnection) { c.Labels = map[string]string{"a": "b"} }, nil},
		{"stored under an older rule, spec changed",
			func(c *v1alpha1.OmniConnection) { c.Spec.Endpoint = "older rule" },
			func(c *v1alpha1.OmniConnection) { c.Spec.InsecureSkipTLSVerify = true }, []string{"spec.endpoint: Invalid value"}},
		{"being deleted",
			func(c *v1alpha1.OmniConnection) { deleting(&c.ObjectMeta) },
			func(c *v1alpha1.OmniConnection) { c.Spec.Endpoint, c.Finalizers = "whatever", nil }, nil},
	})
}

func TestWarningsForOmniConnection(t *testing.T) {
	connection := validConnection()
	checkWarnings(t, WarningsForOmniConnection(connection), nil)

	connection.Spec.InsecureSkipTLSVerify = true
	checkWarnings(t, WarningsForOmniConnection(connection), []string{
		"spec.insecureSkipTLSVerify: any server is believed; set caBundle instead",
	})

	for _, scheme := range []string{"http", "grpc"} {
		connection = validConnection()
		connection.Spec.Endpoint = scheme + "://omni.example.com"
		checkWarnings(t, WarningsForOmniConnection(connection), []string{"spec.endpoint: the connection is not encrypted; use https"})
	}
}

// Omni is reached by host and port; people copy a path with it from the browser.
func TestWarningForAPathInTheEndpoint(t *testing.T) {
	for path, warns := range map[string]bool{"": false, "/": false, "/clusters": true, "/omni/": true} {
		connection := validConnection()
		connection.Spec.Endpoint = "https://omni.example.com:8443" + path

		var want []string
		if warns {
			want = []string{"spec.endpoint: the controller refuses a path: give only scheme, host and port"}
		}

		checkWarnings(t, WarningsForOmniConnection(connection), want)
	}
}

// An endpoint can hold a password in many malformed URLs; no error may repeat it.
func TestEndpointErrorsHideCredentials(t *testing.T) {
	for _, endpoint := range []string{
		"https://me:canary@omni.example.com", "https://me:can/ary:x@host", "https://omni.example.com?token=canary",
		"https://me:canary%zz@host", "canary", "ftp://canary@host#canary", "https://host:canary",
	} {
		connection := validConnection()
		connection.Spec.Endpoint = endpoint

		errs := ValidateOmniConnection(connection)
		if len(errs) == 0 {
			t.Errorf("%s is accepted", endpoint)
		}

		for _, err := range errs {
			if strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "ary:x") {
				t.Errorf("%s: the error repeats it: %v", endpoint, err)
			}
		}
	}
}

func testCertificate(t *testing.T) []byte {
	t.Helper()

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}

	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}

	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
