package charts

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"helm.sh/helm/v4/pkg/provenance"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

const (
	// maxProvenanceBytes is the largest provenance file.
	maxProvenanceBytes = 1 << 20
	// signedBytes is how much is remembered of what was found to be signed: some ten thousand charts.
	signedBytes = 1 << 20
)

// verify checks with the keyring, if there is one, that a chart is signed. A
// provenance file names the digest of the archive, so the archive itself is not
// needed: what is deployed already is checked without a download of the chart.
// What was found to be signed is remembered for as long as the process runs.
func (f *Fetcher) verify(ctx context.Context, s *session, source *Source, resolved *Resolved) error {
	if source.Keyring == nil {
		return nil
	}

	key := sum(source.scope(), resolved.Name, resolved.Version, resolved.ArchiveDigest, resolved.location, string(source.Keyring))
	if f.signed.get(key) != nil {
		return nil
	}

	var (
		file []byte
		err  error
	)

	if resolved.ManifestDigest != "" {
		file, err = f.downloadSignature(ctx, s, resolved)
	} else {
		file, err = s.provenance(ctx, resolved)
	}

	if err != nil {
		return err
	}

	if err := checkProvenance(ctx, file, source.Keyring, resolved); err != nil {
		return fail(Unverified, "chart %s %s: %s", resolved.Name, resolved.Version, redact.Line(err.Error()))
	}

	f.signed.put(key, true, int64(len(key)))

	return nil
}

// fileNames are the names under which a provenance file may list the archive.
func fileNames(resolved *Resolved) []string {
	names := []string{resolved.Name + "-" + resolved.Version + ".tgz"}
	if resolved.ManifestDigest != "" {
		return names
	}

	// Without a query, which is no part of a file's name.
	if location, err := url.Parse(resolved.location); err == nil && path.Base(location.Path) != names[0] {
		names = append(names, path.Base(location.Path))
	}

	return names
}

// checkProvenance checks the signature of a provenance file, and that it is of
// this chart: of its archive, and under its name and version. Helm's own check
// wants the archive itself, which would have to be downloaded for it; what it does
// is done here with the digest, and with the same libraries.
func checkProvenance(ctx context.Context, file, keyring []byte, resolved *Resolved) error {
	keys, err := readKeyring(keyring)
	if err != nil {
		return err
	}

	block, _ := clearsign.Decode(file)
	if block == nil {
		return errors.New("its provenance file holds no signature")
	}

	if _, err := openpgp.CheckDetachedSignature(keys, bytes.NewReader(block.Bytes), block.ArmoredSignature.Body, nil); err != nil {
		return fmt.Errorf("no valid signature of a key of verify.keyringSecretRef: %w", err)
	}

	signed, sums, err := readMessage(ctx, block.Plaintext)
	if err != nil {
		return err
	}

	// An index can offer an old chart, or another one, as the newest. What a file
	// leaves out is seen when the chart is loaded.
	if signed.Name != "" && signed.Name != resolved.Name || signed.Version != "" && signed.Version != resolved.Version {
		return otherChart(signed.Name, signed.Version)
	}

	return checkSum(sums.Files, resolved)
}

// signedChart is what a provenance file says about the chart itself.
type signedChart struct{ Name, Version string }

// readMessage reads the parts of a signed message: Chart.yaml, and the digests of files. A key of the keyring signed
// them, which says nothing about what they become.
func readMessage(ctx context.Context, message []byte) (signed signedChart, sums provenance.SumCollection, err error) {
	limits := foreign.Limits{Bytes: maxProvenanceBytes, Depth: maxDepth, Nodes: maxSmallNodes, Expanded: maxProvenanceBytes}

	// As the parser splits it.
	for part := range bytes.SplitSeq(message, []byte("\n...\n")) {
		if err := foreign.Check(ctx, part, limits); err != nil {
			return signed, sums, fmt.Errorf("its provenance file %w", err)
		}
	}

	if err := provenance.ParseMessageBlock(message, &signed, &sums); err != nil {
		return signed, sums, errors.New("its provenance file is not readable")
	}

	return signed, sums, nil
}

// otherChart says that a signature is of another chart than the one it is offered for.
func otherChart(name, version string) error {
	return fmt.Errorf("what is signed is %s %s; the repository offers it under another name or version", name, version)
}

// checkSum checks the digest that a provenance file gives for the archive, under
// any of the names that it may have there.
func checkSum(files map[string]string, resolved *Resolved) error {
	names := fileNames(resolved)
	err := fmt.Errorf("its provenance file does not name %s", names[0])

	for _, name := range names {
		switch digest := files[name]; digest {
		case "": // first, so that nothing is never taken for a digest
		case resolved.ArchiveDigest:
			return nil
		default:
			err = fmt.Errorf("its provenance file is of another archive: it gives %s the digest %s, not %s", name, digest, resolved.ArchiveDigest)
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
