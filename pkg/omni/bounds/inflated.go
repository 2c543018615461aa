package bounds

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
	"github.com/siderolabs/omni/client/api/omni/specs"
	"google.golang.org/protobuf/reflect/protoreflect"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

const (
	// maxInflated is how much one compressed text of Omni may hold, in bytes. The client library allocates the size that
	// the text itself claims, without checking it.
	maxInflated = 8 << 20
	// maxBlock is how much one block of the format holds, in bytes.
	maxBlock = 128 << 10
)

// compressedField is the name of the fields that Omni compresses with zstd: the texts of patches and manifests.
const compressedField = "compressed_data"

// inflatable is a spec with a text that may be compressed.
type inflatable interface {
	GetCompressedData() []byte
	GetUncompressedData(options ...specs.CompressionOption) (specs.Buffer, error)
}

// Inflate returns the text of a spec. It always checks the size first, even if a caller did: the settings of the
// library's decoder are global to the process, and every new client resets them.
func Inflate(spec inflatable) (string, error) {
	if packed := spec.GetCompressedData(); len(packed) > 0 {
		if err := checkInflated(packed); err != nil {
			return "", err
		}
	}

	text, err := spec.GetUncompressedData()
	if err != nil {
		return "", err
	}

	defer text.Free()

	return string(text.Data()), nil
}

func checkInflated(packed []byte) error {
	size, err := zstdSize(packed)
	if err == nil && size > maxInflated {
		err = &omni.TooMuchDataError{Message: fmt.Sprintf("Omni sent a compressed text of more than %d MiB", maxInflated>>20)}
	}

	return err
}

// inflatedSize returns the size of a field's content after decompression; 0 for fields that are not compressed.
func inflatedSize(field protoreflect.FieldDescriptor, content []byte) (int64, error) {
	if field.Name() != compressedField || len(content) == 0 {
		return 0, nil
	}

	if err := checkInflated(content); err != nil {
		return 0, err
	}

	return zstdSize(content)
}

// zstdSize returns the largest size that a compressed text can have after decompression, in bytes: the size in its
// header, which the decoder enforces, or what its blocks can hold. Anything but exactly one frame is malformed: the
// decoder would go on with the next frame, whose size was not checked.
func zstdSize(text []byte) (int64, error) {
	malformed := fmt.Errorf("%w: a compressed text cannot be read", ErrMalformed)

	var header zstd.Header
	if err := header.Decode(text); err != nil || header.Skippable || header.HeaderSize > len(text) {
		return 0, malformed
	}

	rest, size := text[header.HeaderSize:], int64(0)

	for last := false; !last; {
		if len(rest) < 3 {
			return 0, malformed
		}

		block := int(rest[0]) | int(rest[1])<<8 | int(rest[2])<<16
		last = block&1 == 1

		length, holds := block>>3, int64(maxBlock)
		if kind := block >> 1 & 3; kind == 1 { // one repeated byte
			length, holds = 1, int64(length)
		}

		if len(rest) < 3+length {
			return 0, malformed
		}

		rest, size = rest[3+length:], size+holds
	}

	checksum := 0
	if header.HasCheckSum {
		checksum = 4
	}

	if len(rest) != checksum {
		return 0, malformed
	}

	// The decoder allocates the whole window, whatever the size of the text.
	if !header.SingleSegment && header.WindowSize > maxInflated {
		size = int64(maxInflated) + 1
	}

	if header.HasFCS {
		if header.FrameContentSize > maxInflated {
			return maxInflated + 1, nil
		}

		return int64(header.FrameContentSize), nil // bounded above
	}

	return size, nil
}
