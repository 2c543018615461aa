package plan

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// announced returns the beginning of a compressed text whose header has this length.
func announced(length uint64) []byte {
	return append(binary.LittleEndian.AppendUint64([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xc0, 0x50}, length), "text"...)
}

// zeros returns a compressed text of that many MiB.
func zeros(t *testing.T, mebibytes int) []byte {
	t.Helper()

	var packed bytes.Buffer

	writer, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}

	for range mebibytes {
		if _, err := writer.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}

	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}

	return packed.Bytes()
}

// TestHostileCompression checks the header of a compressed text: a length in 18 bytes of content once ended the
// process. The check does not depend on the settings of the library, which every new client resets.
func TestHostileCompression(t *testing.T) {
	for name, data := range map[string][]byte{
		"announced": announced(256 << 20), "without end": announced(1 << 62), "beyond": announced(1<<64 - 1), "unannounced": zeros(t, 128), "damaged": []byte("text"),
	} {
		patch := omnires.NewConfigPatch("x")
		patch.TypedSpec().Value.CompressedData = data //nolint:staticcheck // no accessor would write this

		foreigntest.WantAllocated(t, 8<<20, func() {
			if _, readable := content(patch); readable {
				t.Errorf("%s: is read", name)
			}

			if got := measureSpec(patch); got != "some" {
				t.Errorf("%s: %s", name, got)
			}
		})
	}
}

func TestCompression(t *testing.T) {
	patch, text := omnires.NewConfigPatch("x"), strings.Repeat("machine: {}\n", 400_000)

	if err := patch.TypedSpec().Value.SetUncompressedData([]byte(text)); err != nil {
		t.Fatal(err)
	}

	if len(patch.TypedSpec().Value.GetCompressedData()) == 0 {
		t.Fatal("is not compressed")
	}

	if got, readable := content(patch); !readable || got != text {
		t.Errorf("%d bytes, %t", len(got), readable)
	}
}
