package bounds

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

func TestZstdSize(t *testing.T) {
	patch, ok := omnitest.Typical(t)["patch"].(*omnires.ConfigPatch)
	if !ok || len(patch.TypedSpec().Value.GetCompressedData()) == 0 {
		t.Fatal("the patch is not compressed")
	}

	written := patch.TypedSpec().Value.GetCompressedData()
	repeated := func(size int) []byte { // a window of 1 KiB, no size, and one byte repeated in blocks
		frame := []byte{0x28, 0xB5, 0x2F, 0xFD, 0, 0}

		for ; size > maxBlock; size -= maxBlock {
			frame = append(frame, byte(1<<1|maxBlock<<3&0xFF), byte(maxBlock<<3>>8&0xFF), byte(maxBlock<<3>>16), 'x')
		}

		return append(frame, byte(1|1<<1|size<<3&0xFF), byte(size<<3>>8&0xFF), byte(size<<3>>16), 'x')
	}

	for name, test := range map[string]struct {
		text []byte
		want int64
		err  error
	}{
		"what Omni sends":   {written, 10800, nil},
		"repeated":          {repeated(3 * maxBlock), 3 * maxBlock, nil},
		"repeated for ever": {repeated(64 << 20), 64 << 20, nil},
		"a claim":           {omnitest.Claiming(1 << 40), maxInflated + 1, nil},
		"two frames":        {append(bytes.Clone(written), omnitest.Claiming(1<<40)...), 0, ErrMalformed},
		"cut off":           {written[:len(written)-1], 0, ErrMalformed},
		"nothing":           {nil, 0, ErrMalformed},
		"garbage":           {[]byte("machine:"), 0, ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := zstdSize(test.text)
			if got != test.want || !errors.Is(err, test.err) {
				t.Errorf("%d, %v", got, err)
			}
		})
	}
}

func TestMalformedAnswersAreRefused(t *testing.T) {
	nested := []byte{}
	for range 2 * maxNesting {
		nested = append([]byte{0x1a, byte(min(len(nested), 127))}, nested[:min(len(nested), 127)]...)
	}

	descriptor := specDescriptor(omnires.MachineStatusType)

	for name, wire := range map[string][]byte{
		"a tag alone":       {0x0a},
		"longer than it is": {0x0a, 0x7f, 'x'},
		"no field":          {0x00, 0x00},
	} {
		if _, err := Weigh(descriptor, wire); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}

	if _, err := Weigh(descriptor, nested); err != nil && !errors.Is(err, ErrMalformed) {
		t.Errorf("nested: %v", err)
	}
}

func TestManyLabelsAreRefused(t *testing.T) {
	sent := omnitest.Invented(omnires.ClusterType, 0)
	for number := range maxMetadataEntries + 1 {
		sent.Metadata.Labels[strings.Repeat("x", number)] = ""
	}

	if _, err := WeighResource(sent); !errors.Is(err, omni.ErrTooMuchData) {
		t.Errorf("error %v", err)
	}
}
