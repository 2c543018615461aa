package omni_test

import (
	"testing"

	"github.com/cosi-project/runtime/pkg/resource/protobuf"
	"google.golang.org/protobuf/encoding/protowire"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// TestKubernetesHealthCheckStatusOnTheWire decodes a message as Omni sends it, with the fields that are not read.
func TestKubernetesHealthCheckStatusOnTheWire(t *testing.T) {
	var wire []byte

	wire = protowire.AppendVarint(protowire.AppendTag(wire, 1, protowire.VarintType), omni.HealthCheckFailed)
	for number, text := range map[protowire.Number]string{2: "exit code 1", 3: "no route", 4: "kube-system", 5: "job-1"} {
		wire = protowire.AppendString(protowire.AppendTag(wire, number, protowire.BytesType), text)
	}

	encoded, err := protobuf.FromResource(omni.NewKubernetesHealthCheckStatus("demo-smoke"))
	if err != nil {
		t.Fatal(err)
	}

	message, err := encoded.Marshal()
	if err != nil {
		t.Fatal(err)
	}

	message.Spec.ProtoSpec = wire

	received, err := protobuf.Unmarshal(message)
	if err != nil {
		t.Fatal(err)
	}

	decoded, err := protobuf.UnmarshalResource(received)
	if err != nil {
		t.Fatal(err)
	}

	want := omni.KubernetesHealthCheckStatusSpec{State: omni.HealthCheckFailed, Error: "exit code 1", Output: "no route"}
	if found, ok := decoded.(*omni.KubernetesHealthCheckStatus); !ok || *found.TypedSpec() != want {
		t.Errorf("it came as %T %+v", decoded, decoded)
	}
}
