package parse

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// maxFuzzed is the longest input that is tried, in bytes.
const maxFuzzed = 128 << 10

// provenanceOf is a signed message, and the key that signed it.
func provenanceOf(t testing.TB, message string) (file, keyring []byte) {
	t.Helper()

	key, err := openpgp.NewEntity("a", "", "a@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}

	var signed, ring bytes.Buffer

	writer, err := clearsign.Encode(&signed, key.PrivateKey, nil)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := writer.Write([]byte(message)); err != nil {
		t.Fatal(err)
	}

	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}

	armored, err := armor.Encode(&ring, openpgp.PublicKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}

	if err := key.Serialize(armored); err != nil {
		t.Fatal(err)
	}

	if err := armored.Close(); err != nil {
		t.Fatal(err)
	}

	return signed.Bytes(), ring.Bytes()
}

// hostileMessages are signed messages that became hundreds of MiB, or would without end.
func hostileMessages() map[string]string {
	aliases := "a: &a " + strings.Repeat("x", 30<<10) + "\nb: [" + strings.TrimSuffix(strings.Repeat("*a,", 2000), ",") + "]"

	return map[string]string{
		"grows to more than 1048576 bytes": aliases + "\n...\nfiles: {}\n",
		"has more than 10000 values":       "name: demo\n...\nfiles: [" + strings.Repeat("a,", 30_000) + "a]\n",
		"contains itself":                  "name: demo\n...\nfiles: &a [*a]\n",
	}
}

func TestHostileProvenance(t *testing.T) {
	for want, message := range hostileMessages() {
		file, keyring := provenanceOf(t, message)

		foreigntest.WantAllocated(t, 64<<20, func() {
			err := CheckProvenance(file, keyring, &render.Provenance{Name: "demo", Version: "1.0.0", Files: []string{"demo-1.0.0.tgz"}})
			if err == nil || !strings.Contains(err.Error(), "its provenance file "+want) && !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

func FuzzProvenance(f *testing.F) {
	file, keyring := provenanceOf(f, "name: demo\nversion: 1.0.0\n...\nfiles:\n  demo-1.0.0.tgz: sha256:00\n")
	f.Add(file, keyring)
	f.Add([]byte("name: demo\n...\nfiles: {a: b}\n"), []byte{0xc6, 0xff, 0xff, 0xff, 0xff, 0xff})

	for _, message := range hostileMessages() {
		f.Add([]byte(message), keyring)
	}

	f.Fuzz(func(t *testing.T, file, keyring []byte) {
		if len(file)+len(keyring) > maxFuzzed {
			return
		}

		foreigntest.WantAllocated(t, 64<<20, func() {
			_ = CheckProvenance(file, keyring, &render.Provenance{Name: "demo", Version: "1.0.0", Files: []string{"demo-1.0.0.tgz"}})
			_, _, _ = readMessage(t.Context(), file)
		})
	})
}
