package parse

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"helm.sh/helm/v4/pkg/provenance"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

const (
	// maxMessageBytes is the longest signed message, and what it may become.
	maxMessageBytes = 1 << 20
	// maxMessageNodes is how many values it may have; a real one has some tens.
	maxMessageNodes = 10_000
)

// CheckProvenance checks the signature of a provenance file, and that it is of
// this chart: of its archive, and under its name and version. Helm's own check
// wants the archive itself, which would have to be downloaded for it; what it does
// is done here with the digest, and with the same libraries.
func CheckProvenance(file, keyring []byte, wanted *render.Provenance) error {
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

	signed, sums, err := readMessage(context.Background(), block.Plaintext)
	if err != nil {
		return err
	}

	// An index can offer an old chart, or another one, as the newest.
	if err := wanted.Check(signed.Name, signed.Version); err != nil {
		return err
	}

	return checkSum(sums.Files, wanted)
}

// signedChart is what a provenance file says about the chart itself.
type signedChart struct{ Name, Version string }

// readMessage reads the parts of a signed message: Chart.yaml, and the digests of files. A key of the keyring signed
// them, which says nothing about what they become.
func readMessage(ctx context.Context, message []byte) (signed signedChart, sums provenance.SumCollection, err error) {
	limits := foreign.Limits{Bytes: maxMessageBytes, Depth: maxDepth, Nodes: maxMessageNodes, Expanded: maxMessageBytes}

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

// checkSum checks the digest that a provenance file gives for the archive, under
// any of the names that it may have there.
func checkSum(files map[string]string, wanted *render.Provenance) error {
	err := fmt.Errorf("its provenance file does not name %s", wanted.Files[0])

	for _, name := range wanted.Files {
		switch digest := files[name]; digest {
		case "": // first, so that nothing is never taken for a digest
		case wanted.Digest:
			return nil
		default:
			err = fmt.Errorf("its provenance file is of another archive: it gives %s the digest %s, not %s", name, digest, wanted.Digest)
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
