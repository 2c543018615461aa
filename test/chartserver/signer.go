package chartserver

import (
	"bytes"
	"fmt"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// Signer signs charts as helm package --sign does.
type Signer struct{ key *openpgp.Entity }

// NewSigner makes a signer with a key of its own.
func NewSigner(name string) *Signer {
	key, err := openpgp.NewEntity(name, "", name+"@example.com", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
	must(err)

	return &Signer{key: key}
}

// PublicKey is what gpg --export gives.
func (s *Signer) PublicKey() []byte {
	var key bytes.Buffer

	must(s.key.Serialize(&key))

	return key.Bytes()
}

// Sign returns the provenance file of a chart.
func (s *Signer) Sign(chart Chart) []byte {
	var signed bytes.Buffer

	writer, err := clearsign.Encode(&signed, s.key.PrivateKey, nil)
	must(err)

	_, err = fmt.Fprintf(writer, "name: %s\nversion: %s\n\n...\nfiles:\n  %s-%s.tgz: %s\n", chart.Name, chart.Version, chart.Name, chart.Version, Digest(chart.Pack()))
	must(err)
	must(writer.Close())

	return signed.Bytes()
}
