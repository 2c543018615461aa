package deploy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// issueSecrets does with the rendered Issuers and Certificates what cert-manager would do, and returns the content of
// the Secrets by name.
func issueSecrets(t *testing.T, objects []*unstructured.Unstructured) map[string]map[string]string {
	t.Helper()

	authorities, leaves := certificates(t, objects)
	if len(authorities) != 1 || len(leaves) != 2 {
		t.Fatalf("there are %d authorities and %d certificates", len(authorities), len(leaves))
	}

	ca := newCertificate(t, authorities[0], nil)
	secrets := map[string]map[string]string{ca.secret: ca.files}

	for _, leaf := range leaves {

		// The chain that is rendered: leaf, issuer of that name, Secret of the authority.
		issuer := spec(t, find(t, objects, "Issuer", text(t, leaf, "issuerRef", "name")))
		if got := text(t, issuer, "ca", "secretName"); got != ca.secret {
			t.Fatalf("the issuer of %s signs with Secret %q, and the authority is in %q", text(t, leaf, "secretName"), got, ca.secret)
		}

		serving := newCertificate(t, leaf, ca)
		secrets[serving.secret] = serving.files
	}

	return secrets
}

// certificates are the specs of the rendered Certificates: those of authorities, and the others.
func certificates(t *testing.T, objects []*unstructured.Unstructured) (authorities, leaves []map[string]any) {
	t.Helper()

	for _, object := range objects {
		if object.GetKind() != "Certificate" {
			continue
		}

		if spec := spec(t, object); spec["isCA"] == true {
			authorities = append(authorities, spec)
		} else {
			leaves = append(leaves, spec)
		}
	}

	return authorities, leaves
}

// certificate is what is in a Secret that cert-manager made.
type certificate struct {
	secret string
	files  map[string]string
	parsed *x509.Certificate
	key    *ecdsa.PrivateKey
}

func newCertificate(t *testing.T, spec map[string]any, parent *certificate) *certificate {
	t.Helper()

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	names, _, err := unstructured.NestedStringSlice(spec, "dnsNames")
	if err != nil {
		t.Fatal(err)
	}

	isCA, _, _ := unstructured.NestedBool(spec, "isCA")
	name, _, _ := unstructured.NestedString(spec, "commonName")

	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IsCA: isCA, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}

	signer, signerKey := template, key

	if isCA {
		template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageCertSign, nil
	}

	if parent != nil {
		signer, signerKey = parent.parsed, parent.key
	}

	der, err := x509.CreateCertificate(rand.Reader, template, signer, key.Public(), signerKey)
	if err != nil {
		t.Fatal(err)
	}

	return newSecret(t, text(t, spec, "secretName"), der, key, parent)
}

func newSecret(t *testing.T, name string, der []byte, key *ecdsa.PrivateKey, parent *certificate) *certificate {
	t.Helper()

	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}

	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}

	encoded := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	files := map[string]string{
		"tls.crt": encoded, "ca.crt": encoded,
		"tls.key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})),
	}

	if parent != nil {
		files["ca.crt"] = parent.files["tls.crt"]
	}

	return &certificate{secret: name, files: files, parsed: parsed, key: key}
}

func spec(t *testing.T, object *unstructured.Unstructured) map[string]any {
	t.Helper()

	result, ok, err := unstructured.NestedMap(object.Object, "spec")
	if err != nil || !ok {
		t.Fatalf("%s has no spec: %v", identity(object), err)
	}

	return result
}

// text returns a field that must be there.
func text(t *testing.T, object map[string]any, path ...string) string {
	t.Helper()

	result, ok, err := unstructured.NestedString(object, path...)
	if err != nil || !ok || result == "" {
		t.Fatalf("there is no field %v: %v", path, err)
	}

	return result
}
