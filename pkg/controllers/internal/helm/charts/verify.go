package charts

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"path"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"helm.sh/helm/v4/pkg/provenance"

	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/redact"
)

// maxProvenanceBytes is the largest provenance file.
const maxProvenanceBytes = 1 << 20

// verify checks an archive against its provenance file. What was found to be
// signed once is not asked for again while the cache remembers it.
func (f *Fetcher) verify(ctx context.Context, s *session, source *Source, resolved *Resolved, archive []byte) error {
	key := "verified/" + sum(source.scope(), resolved.Name, resolved.Version, resolved.ArchiveDigest, resolved.location, string(source.Keyring))
	if f.cache.get(key) != nil {
		return nil
	}

	var (
		signed []byte
		err    error
	)

	if resolved.ManifestDigest != "" {
		signed, err = f.downloadSignature(ctx, s, resolved)
	} else {
		signed, err = s.provenance(ctx, resolved)
	}

	if err != nil {
		return err
	}

	if err := checkProvenance(archive, signed, source.Keyring, fileNames(resolved)); err != nil {
		return fail(Unverified, "chart %s %s: %s", resolved.Name, resolved.Version, redact.Line(err.Error()))
	}

	f.cache.put(key, true, int64(len(key)))

	return nil
}

// fileNames are the names under which a provenance file may list the archive.
func fileNames(resolved *Resolved) []string {
	names := []string{resolved.Name + "-" + resolved.Version + ".tgz"}
	if base := path.Base(resolved.location); resolved.ManifestDigest == "" && base != names[0] {
		names = append(names, base)
	}

	return names
}

func checkProvenance(archive, signed, keyring []byte, names []string) error {
	keys, err := readKeyring(keyring)
	if err != nil {
		return err
	}

	signatory := &provenance.Signatory{KeyRing: keys}

	for _, name := range names {
		if _, err = signatory.Verify(archive, signed, name); err == nil {
			return nil
		}
	}

	return err
}

// readKeyring reads public keys, binary or as any number of armoured blocks.
func readKeyring(data []byte) (openpgp.EntityList, error) {
	if !bytes.Contains(data, []byte("-----BEGIN PGP")) {
		keys, err := openpgp.ReadKeyRing(bytes.NewReader(data))
		if err != nil || len(keys) == 0 {
			return nil, errors.New("the keyring of verify.keyringSecretRef is not readable: export it with gpg --export")
		}

		return keys, nil
	}

	var keys openpgp.EntityList

	// One buffered reader for all blocks: the decoder would otherwise read ahead into the next one.
	for reader := bufio.NewReader(bytes.NewReader(data)); ; {
		block, err := armor.Decode(reader)
		if errors.Is(err, io.EOF) && len(keys) > 0 {
			return keys, nil
		}

		if err != nil {
			return nil, errors.New("the keyring of verify.keyringSecretRef is not readable: export it with gpg --export --armor")
		}

		more, err := openpgp.ReadKeyRing(block.Body)
		if err != nil {
			return nil, errors.New("the keyring of verify.keyringSecretRef holds a block that is no key")
		}

		keys = append(keys, more...)
	}
}
