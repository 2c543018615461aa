package charts

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/foreigntest"
)

// maxFuzzed is the longest input that is tried, in bytes.
const maxFuzzed = 128 << 10

func FuzzTags(f *testing.F) {
	f.Add([]byte(`{"name":"demo","tags":["1.0.0","1.0.0_b"]}`))
	f.Add([]byte(`{"tags":null}`))
	f.Add([]byte(`{"tags":[` + strings.Repeat(`"",`, 30_000) + `""]}`))
	f.Add([]byte(strings.Repeat("[", 20_000)))

	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > maxFuzzed {
			return
		}

		foreigntest.WantAllocated(t, 32<<20, func() { _, _ = parseTags(t.Context(), text, "x") })
	})
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"layers":[{"mediaType":"application/vnd.cncf.helm.chart.content.v1.tar+gzip","digest":"sha256:` + strings.Repeat("0", 64) + `","size":1}],"annotations":{"a":"b"}}`))
	f.Add([]byte(`{"layers":[` + strings.Repeat("{},", 30_000) + `{}]}`))

	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > maxFuzzed {
			return
		}

		foreigntest.WantAllocated(t, 32<<20, func() { _, _ = parseManifest(t.Context(), text, "x") })
	})
}

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
			err := checkProvenance(t.Context(), file, keyring, &Resolved{Name: "demo", Version: "1.0.0"})
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
			_ = checkProvenance(t.Context(), file, keyring, &Resolved{Name: "demo", Version: "1.0.0"})
			_, _, _ = readMessage(t.Context(), file)
		})
	})
}
