package omni_test

import (
	"bytes"
	"testing"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"google.golang.org/protobuf/encoding/protowire"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

func TestDisablePublicDiscovery(t *testing.T) {
	field := func(bits uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, 5, protowire.VarintType), bits)
	}
	other := protowire.AppendString(protowire.AppendTag(nil, 6, protowire.BytesType), "other")
	text := protowire.AppendString(protowire.AppendTag(nil, 5, protowire.BytesType), "not a bool")
	broken := []byte{0xff}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

	for name, test := range map[string]struct {
		unknown []byte
		is      bool
		on, off []byte // what is there after it was set
	}{
		"missing":            {nil, false, field(1), nil},
		"true":               {field(1), true, field(1), nil},
		"a false":            {field(0), false, field(1), field(0)},
		"another true":       {field(7), true, field(7), nil},
		"the last wins":      {join(field(1), field(0)), false, field(1), join(field(1), field(0))},
		"the last wins, on":  {join(field(0), other, field(1)), true, join(field(0), other, field(1)), other},
		"another field":      {other, false, join(other, field(1)), other},
		"between others":     {join(other, field(1), other), true, join(other, field(1), other), join(other, other)},
		"of another type":    {text, false, join(text, field(1)), text},
		"then not readable":  {join(field(1), broken), true, join(field(1), broken), broken},
		"first not readable": {join(broken, field(1)), false, join(broken, field(1), field(1)), join(broken, field(1))},
	} {
		t.Run(name, func(t *testing.T) {
			for value, want := range map[bool][]byte{true: test.on, false: test.off} {
				features := &specs.ClusterSpec_Features{EnableWorkloadProxy: true}
				features.ProtoReflect().SetUnknown(bytes.Clone(test.unknown))

				if got := omni.DisablesPublicDiscovery(features); got != test.is {
					t.Errorf("it is %v", got)
				}

				omni.SetDisablePublicDiscovery(features, value)

				if got := []byte(features.ProtoReflect().GetUnknown()); !bytes.Equal(got, want) {
					t.Errorf("set to %v: % x, want % x", value, got, want)
				}

				if name != "first not readable" && omni.DisablesPublicDiscovery(features) != value || !features.GetEnableWorkloadProxy() {
					t.Errorf("set to %v: %v", value, features)
				}
			}
		})
	}

	if omni.DisablesPublicDiscovery(nil) {
		t.Error("no features disable it")
	}
}
