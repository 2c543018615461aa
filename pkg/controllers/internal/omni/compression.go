package omni

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/siderolabs/omni/client/pkg/compression"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
)

const (
	// maxContent is the largest content of a patch or of manifests in Omni when it is not compressed, in bytes.
	maxContent = 16 << 20
	// maxWindow is how far a compressed content may refer back, in bytes: the decoder keeps that much. Omni uses 256 KiB.
	maxWindow = 8 << 20
)

// compressible is a spec of Omni whose content may be compressed.
type compressible interface {
	GetData() string
	GetCompressedData() []byte
}

// decompressor reads contents with Omni's dictionary, one at a time.
type decompressor struct {
	mu      sync.Mutex
	decoder *zstd.Decoder
}

// newDecompressor makes the one of the process, when it is needed.
//
//nolint:gochecknoglobals // the dictionary takes some memory, and the same one serves all connections
var newDecompressor = sync.OnceValues(func() (*decompressor, error) {
	// The dictionary belongs to the library.
	config, err := compression.BuildConfig(true, true, false)
	if err != nil {
		return nil, fmt.Errorf("prepare to read compressed contents: %w", err)
	}

	if err := config.ZstdDecoder.ResetWithOptions(nil, zstd.WithDecoderMaxWindow(maxWindow)); err != nil {
		return nil, fmt.Errorf("prepare to read compressed contents: %w", err)
	}

	return &decompressor{decoder: config.ZstdDecoder}, nil
})

// uncompressed is the content of a spec. The library would allocate the length that a compressed one announces, whatever
// that is: eighteen bytes from an Omni would end the process.
func uncompressed(spec compressible) (string, error) {
	packed := spec.GetCompressedData()
	if len(packed) == 0 {
		return spec.GetData(), nil
	}

	d, err := newDecompressor()
	if err != nil {
		return "", err
	}

	return d.read(packed)
}

func (d *decompressor) read(packed []byte) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()

	// As a stream, so that nothing is allocated ahead.
	if err := d.decoder.Reset(bytes.NewReader(packed)); err != nil {
		return "", errors.New("its compression is damaged")
	}

	defer func() { _ = d.decoder.Reset(nil) }()

	text, err := io.ReadAll(io.LimitReader(d.decoder, maxContent+1))
	if err != nil {
		return "", errors.New("its compression is damaged")
	}

	if len(text) > maxContent {
		return "", &foreign.LimitError{What: foreign.Inflated, Limit: maxContent}
	}

	return string(text), nil
}
