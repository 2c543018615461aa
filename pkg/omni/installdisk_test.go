package omni_test

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource/protobuf"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// TestMachineInstallDiskConfigOnTheWire checks the field numbers, and that a resource comes back as the type that it was, with the
// fields of a newer Omni.
func TestMachineInstallDiskConfigOnTheWire(t *testing.T) {
	for _, want := range []omni.MachineInstallDiskConfigSpec{
		{DiskSelector: "disk.size > 4u"}, {Disk: "/dev/sda"}, {Disk: "/dev/sda", Unknown: string(protowire.AppendString(protowire.AppendTag(nil, 9, protowire.BytesType), "newer"))},
	} {
		sent := omni.NewMachineInstallDiskConfig("machine-1")
		*sent.TypedSpec() = want

		encoded, err := protobuf.FromResource(sent)
		if err != nil {
			t.Fatal(err)
		}

		message, err := encoded.Marshal()
		if err != nil {
			t.Fatal(err)
		}

		fields := map[protowire.Number]string{1: want.DiskSelector, 2: want.Disk}
		if want.Unknown != "" {
			fields[9] = "newer"
		}

		if diff := cmp.Diff(fields, texts(t, message.GetSpec().GetProtoSpec())); diff != "" {
			t.Error(diff)
		}

		decoded, err := protobuf.UnmarshalResource(encoded)
		if err != nil {
			t.Fatal(err)
		}

		received, ok := decoded.(*omni.MachineInstallDiskConfig)
		if !ok || *received.TypedSpec() != want || received.Metadata().ID() != "machine-1" {
			t.Errorf("%+v came back as %T %+v", want, decoded, decoded)
		}
	}
}

// A message of nothing but small unknown fields takes memory in proportion to its length.
func TestManyUnknownFields(t *testing.T) {
	wire := bytes.Repeat(protowire.AppendVarint(protowire.AppendTag(nil, 9, protowire.VarintType), 1), 20_000)

	var (
		spec          omni.MachineInstallDiskConfigSpec
		before, after runtime.MemStats
	)

	runtime.ReadMemStats(&before)

	if err := spec.UnmarshalBinary(wire); err != nil || spec.Unknown != string(wire) {
		t.Fatalf("%d of %d bytes, %v", len(spec.Unknown), len(wire), err)
	}

	runtime.ReadMemStats(&after)

	if took := after.TotalAlloc - before.TotalAlloc; took > 32*uint64(len(wire)) {
		t.Errorf("%d bytes for %d", took, len(wire))
	}
}

// texts returns the texts of a message by field number, with empty ones for those of the two fields that are not there.
func texts(t *testing.T, wire []byte) map[protowire.Number]string {
	t.Helper()

	found := map[protowire.Number]string{1: "", 2: ""}

	for len(wire) > 0 {
		number, kind, tag := protowire.ConsumeTag(wire)
		if tag < 0 || kind != protowire.BytesType {
			t.Fatalf("field %d has kind %d", number, kind)
		}

		text, length := protowire.ConsumeString(wire[tag:])
		if length < 0 {
			t.Fatal("malformed")
		}

		found[number], wire = text, wire[tag+length:]
	}

	return found
}
