package plan

import (
	"testing"

	"github.com/cosi-project/runtime/api/v1alpha1"
	cosiproto "github.com/cosi-project/runtime/pkg/resource/protobuf"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// FuzzResource checks that any resource from Omni is weighed without a panic, and that decoding it takes no more memory
// than its weight, except for what decoding drops.
func FuzzResource(f *testing.F) {
	for _, item := range omnitest.Typical(f) {
		f.Add(omnitest.Encoded(f, item))
	}

	for _, resourceType := range []string{omnires.MachineStatusType, omnires.ConfigPatchType} {
		sent := omnitest.Invented(resourceType, 0)
		sent.Spec.ProtoSpec = []byte{0x9a, 1, 0, 0x9a, 1, 0}

		text, err := sent.MarshalVT()
		if err != nil {
			f.Fatal(err)
		}

		f.Add(text)
	}

	f.Fuzz(func(t *testing.T, text []byte) {
		envelope, err := bounds.Weigh((&v1alpha1.Resource{}).ProtoReflect().Descriptor(), text)
		if err != nil {
			return
		}

		var sent v1alpha1.Resource

		foreigntest.WantAllocated(t, uint64(4*envelope)+1<<20, func() { err = sent.UnmarshalVT(text) })

		if err != nil {
			return
		}

		weight, err := bounds.WeighResource(&sent)
		if err != nil {
			return
		}

		wrapped, err := cosiproto.Unmarshal(&sent)
		if err != nil {
			return
		}

		foreigntest.WantAllocated(t, uint64(4*weight)+1<<20, func() {
			if decoded, err := cosiproto.UnmarshalResource(wrapped); err == nil {
				_, _ = content(decoded)
			}
		})
	})
}
