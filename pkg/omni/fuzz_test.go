package omni

import (
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/api/v1alpha1"
	cosiproto "github.com/cosi-project/runtime/pkg/resource/protobuf"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/foreigntest"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// FuzzServiceAccountKey: whatever a Secret holds, reading it as a key takes a bounded amount of memory, and no error
// shows any of it.
func FuzzServiceAccountKey(f *testing.F) {
	f.Add("")
	f.Add("OMNI_ENDPOINT=x\nOMNI_SERVICE_ACCOUNT_KEY=y")
	f.Add("eyJuYW1lIjoiYSIsInBncF9rZXkiOiJiIn0=")
	f.Add(testKeyText(f))

	f.Fuzz(func(t *testing.T, text string) {
		foreigntest.WantAllocated(t, 16<<20, func() {
			key, err := ParseServiceAccountKey([]byte(text))
			if (err == nil) == key.IsZero() {
				t.Errorf("key %v, error %v", key.IsZero(), err)
			}

			if err != nil && len(text) >= 24 && strings.Contains(err.Error(), text[:24]) {
				t.Errorf("the error shows what was read: %v", err)
			}
		})
	})
}

func testKeyText(f *testing.F) string {
	f.Helper()

	return encodeKey(f, "operator", newEntity(f, time.Now().Add(-time.Hour), 86400, 86400))
}

// FuzzResource: what Omni sends as a resource is weighed without a panic, and decoding it takes no more memory than it
// weighs, but for what is dropped on the way.
func FuzzResource(f *testing.F) {
	for _, item := range typical(f) {
		f.Add(encoded(f, item))
	}

	for _, resourceType := range []string{omnires.MachineStatusType, omnires.ConfigPatchType} {
		sent := invented(resourceType, 0)
		sent.Spec.ProtoSpec = []byte{0x9a, 1, 0, 0x9a, 1, 0}

		text, err := sent.MarshalVT()
		if err != nil {
			f.Fatal(err)
		}

		f.Add(text)
	}

	f.Fuzz(func(t *testing.T, text []byte) {
		envelope, err := weigh((&v1alpha1.Resource{}).ProtoReflect().Descriptor(), text)
		if err != nil {
			return
		}

		var sent v1alpha1.Resource

		foreigntest.WantAllocated(t, uint64(4*envelope)+1<<20, func() { err = sent.UnmarshalVT(text) })

		if err != nil {
			return
		}

		weight, err := weighResource(&sent)
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

// FuzzMessage: what Omni says in an error is one bounded line.
func FuzzMessage(f *testing.F) {
	f.Add("rpc error: code = InvalidArgument desc = failed to validate: no such class")
	f.Add("a\nb\x00\xff" + strings.Repeat("x", 2000))

	f.Fuzz(func(t *testing.T, text string) {
		foreigntest.WantAllocated(t, uint64(256*len(text))+1<<20, func() {
			if said := redact.Bounded(Sanitize(text), redact.MaxBytes); len(said) > redact.MaxBytes || strings.ContainsAny(said, "\n\r") {
				t.Errorf("%q", said)
			}
		})
	})
}
