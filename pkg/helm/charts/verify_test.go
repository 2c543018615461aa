package charts_test

import (
	"bytes"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"helm.sh/helm/v4/pkg/provenance"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

func newKey(t *testing.T, name string) *openpgp.Entity {
	t.Helper()

	key, err := openpgp.NewEntity(name, "", name+"@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}

	return key
}

// public exports keys, as gpg --export does.
func public(t *testing.T, armored bool, keys ...*openpgp.Entity) []byte {
	t.Helper()

	var ring bytes.Buffer

	for _, key := range keys {
		if !armored {
			if err := key.Serialize(&ring); err != nil {
				t.Fatal(err)
			}

			continue
		}

		writer, err := armor.Encode(&ring, openpgp.PublicKeyType, nil)
		if err != nil {
			t.Fatal(err)
		}

		if err := key.Serialize(writer); err != nil {
			t.Fatal(err)
		}

		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}

		ring.WriteString("\n")
	}

	return ring.Bytes()
}

func sign(t *testing.T, key *openpgp.Entity, data []byte, name string) []byte {
	t.Helper()

	text, err := (&provenance.Signatory{Entity: key}).ClearSign(data, name, []byte("name: demo\n"))
	if err != nil {
		t.Fatal(err)
	}

	return []byte(text)
}

func TestProvenance(t *testing.T) {
	chart := chartserver.ConfigMapChart("demo", "1.0.0")
	data := chart.Pack()
	signer, other := newKey(t, "signer"), newKey(t, "other")
	good := sign(t, signer, data, "demo-1.0.0.tgz")

	for _, test := range []struct {
		name    string
		signed  []byte
		keyring []byte
		words   []string // of the refusal; nil: accepted
	}{
		{name: "signed", signed: good, keyring: public(t, false, signer)},
		{name: "armoured, second key", signed: good, keyring: public(t, true, other, signer)},
		{name: "not signed", keyring: public(t, false, signer), words: []string{"no provenance file"}},
		{name: "another signer", signed: good, keyring: public(t, false, other), words: []string{"demo 1.0.0"}},
		{name: "another archive", signed: sign(t, signer, []byte("x"), "demo-1.0.0.tgz"), keyring: public(t, false, signer), words: []string{"sha256"}},
		{name: "another name", signed: sign(t, signer, data, "other-1.0.0.tgz"), keyring: public(t, false, signer), words: []string{"demo-1.0.0.tgz"}},
		{name: "no keyring", signed: good, keyring: []byte("x"), words: []string{"gpg --export"}},
		{name: "empty keyring", signed: good, keyring: []byte{}, words: []string{"gpg --export"}},
		{name: "broken armour", signed: good, keyring: []byte("-----BEGIN PGP"), words: []string{"--armor"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			repository, registry := startRepository(t), startRegistry(t)
			repository.Add(chart)
			registry.Push("demo", chart, test.signed)

			if test.signed != nil {
				repository.AddFile("demo-1.0.0.tgz.prov", test.signed)
			}

			for _, source := range []charts.Source{
				{Repository: repository.URL(), Chart: "demo", Keyring: test.keyring},
				{Chart: registry.URL("demo"), CA: registry.CA(), Keyring: test.keyring},
			} {
				_, err := fetch(newFetcher(charts.Options{}), source)
				if test.words == nil {
					if err != nil {
						t.Errorf("%s: %v", source.Chart, err)
					}

					continue
				}

				wantReason(t, err, charts.Unverified, test.words...)
			}
		})
	}
}

func TestProvenanceIsRemembered(t *testing.T) {
	chart := chartserver.ConfigMapChart("demo", "1.0.0")
	signer := newKey(t, "signer")

	repository := startRepository(t)
	repository.Add(chart)
	repository.AddFile("demo-1.0.0.tgz.prov", sign(t, signer, chart.Pack(), "demo-1.0.0.tgz"))

	f := newFetcher(charts.Options{})
	for range 3 {
		if _, err := fetch(f, charts.Source{Repository: repository.URL(), Chart: "demo", Keyring: public(t, false, signer)}); err != nil {
			t.Fatal(err)
		}
	}

	if got := len(repository.Requests()); got != 3 {
		t.Errorf("%d requests, want 3: %v", got, repository.Requests())
	}
}

// The provenance file is next to the archive, also if the index names a URL with a query.
func TestProvenanceOfAURLWithAQuery(t *testing.T) {
	chart := chartserver.ConfigMapChart("demo", "1.0.0")
	signer := newKey(t, "signer")

	repository := startRepository(t)
	repository.AddFile("files/odd.tgz", chart.Pack())
	repository.AddFile("files/odd.tgz.prov", sign(t, signer, chart.Pack(), "odd.tgz"))
	answer(repository, "/index.yaml", "apiVersion: v1\nentries: {demo: [{name: demo, version: 1.0.0, urls: ['files/odd.tgz?token=a/b']}]}\n")

	if _, err := fetch(newFetcher(charts.Options{}), charts.Source{Repository: repository.URL(), Chart: "demo", Keyring: public(t, false, signer)}); err != nil {
		t.Errorf("%v; requests: %v", err, repository.Requests())
	}
}

func TestASignedChartUnderAnotherVersion(t *testing.T) {
	old := chartserver.ConfigMapChart("demo", "1.0.0")
	signer := newKey(t, "signer")

	repository := startRepository(t)
	repository.Add(old)
	repository.AddFile("demo-1.0.0.tgz.prov", sign(t, signer, old.Pack(), "demo-1.0.0.tgz"))
	answer(repository, "/index.yaml", "apiVersion: v1\nentries: {demo: [{name: demo, version: 2.0.0, urls: [demo-1.0.0.tgz]}]}\n")

	source := charts.Source{Repository: repository.URL(), Chart: "demo", Keyring: public(t, false, signer)}

	archive, err := fetch(newFetcher(charts.Options{}), source)
	if err != nil {
		t.Fatal(err)
	}

	_, err = load(archive)
	wantReason(t, err, charts.Unverified, "demo 2.0.0", "demo 1.0.0")
}

// Nor is a chart looked at whose provenance file is of another version.
func TestAProvenanceFileOfAnotherVersion(t *testing.T) {
	old := chartserver.ConfigMapChart("demo", "1.0.0")
	signer := chartserver.NewSigner("signer")

	repository := startRepository(t)
	repository.Add(old)
	repository.AddFile("demo-1.0.0.tgz.prov", signer.Sign(old))
	answer(repository, "/index.yaml", "apiVersion: v1\nentries: {demo: [{name: demo, version: 2.0.0, urls: [demo-1.0.0.tgz], digest: "+chartserver.Digest(old.Pack())+"}]}\n")

	_, err := newFetcher(charts.Options{}).Resolve(t.Context(), charts.Source{Repository: repository.URL(), Chart: "demo", Keyring: signer.PublicKey()})
	wantReason(t, err, charts.Unverified, "demo 2.0.0", "demo 1.0.0")

	if got := repository.Downloads(); got != 0 {
		t.Errorf("%d downloads", got)
	}
}
