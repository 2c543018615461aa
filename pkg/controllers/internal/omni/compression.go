package omni

import (
	"github.com/klauspost/compress/zstd"
	"github.com/siderolabs/omni/client/api/omni/specs"
)

// maxContent is the largest content of a patch or of manifests in Omni when it is not compressed, in bytes.
const maxContent = 16 << 20

// The library asks a compressed content how long it is and allocates that, whatever it says: twenty bytes of an Omni
// would end the process. Its settings are the process's, so they are set before anything can be read.
func init() { //nolint:gochecknoinits // see above
	config := specs.GetCompressionConfig()

	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxContent))
	if err != nil {
		panic(err) // the options are constants
	}

	config.ZstdDecoder, config.BufferPool = decoder, boundedPool{}
	specs.SetCompressionConfig(config)
}

// boundedPool makes buffers of maxContent at most. The decoder refuses what has more.
type boundedPool struct{ specs.NoOpBufferPool }

// Get implements specs.BufferPool.
func (p boundedPool) Get(length int) specs.Buffer {
	return p.NoOpBufferPool.Get(min(max(length, 0), maxContent))
}
