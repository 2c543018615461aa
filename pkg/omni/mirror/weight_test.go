package mirror

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/resource"
	cosiproto "github.com/cosi-project/runtime/pkg/resource/protobuf"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// TestWeightIsTheMemory checks that a weight is the memory that a resource takes in a mirror, or a little more.
func TestWeightIsTheMemory(t *testing.T) {
	const copies = 4000

	for name, item := range omnitest.Typical(t) {
		t.Run(name, func(t *testing.T) {
			weight, err := weightOf(item)
			if err != nil {
				t.Fatal(err)
			}

			// A compressed text counts with its decompressed size, although the copy keeps it compressed.
			if patch, ok := item.(*omnires.ConfigPatch); ok {
				text, err := patch.TypedSpec().Value.GetUncompressedData()
				if err != nil {
					t.Fatal(err)
				}

				weight -= int64(len(text.Data()))
			}

			// Garbage of earlier tests may be freed meanwhile.
			for range 5 {
				taken := memoryOf(t, item, copies)
				t.Logf("weighs %d bytes, takes %d", weight, taken)

				if taken <= weight*5/4 && weight <= 3*taken {
					return
				}
			}

			t.Error("the weight is not the memory")
		})
	}
}

// memoryOf returns the memory that one of many copies of a resource takes in a table.
func memoryOf(t *testing.T, item resource.Resource, copies int) int64 {
	t.Helper()

	wire := omnitest.Encoded(t, item)
	table := newStore(mirroredKinds())
	before := foreigntest.LiveBytes()

	for number := range copies {
		table.put(withWeight(t, wire, fmt.Sprintf("%s-%d", item.Metadata().ID(), number)))
	}

	taken := foreigntest.LiveBytes() - before

	runtime.KeepAlive(table)

	return taken / int64(copies)
}

// withWeight decodes a resource under another ID.
func withWeight(t testing.TB, wire []byte, id string) stored {
	t.Helper()

	var sent v1alpha1.Resource
	if err := sent.UnmarshalVT(wire); err != nil {
		t.Fatal(err)
	}

	sent.Metadata.Id = id

	envelope, err := cosiproto.Unmarshal(&sent)
	if err != nil {
		t.Fatal(err)
	}

	decoded, err := cosiproto.UnmarshalResource(envelope)
	if err != nil {
		t.Fatal(err)
	}

	return stored{Resource: decoded}
}
