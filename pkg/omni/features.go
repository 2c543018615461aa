package omni

import (
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"google.golang.org/protobuf/encoding/protowire"
)

// LabelDisabled is on a patch that Omni keeps and does not apply. Omni has it since release 1.10, and the client library 1.9.3 does
// not know it.
const LabelDisabled = omnires.SystemLabelPrefix + "disabled"

// disablePublicDiscovery is the number of ClusterSpec.Features.disable_public_discovery_service, a bool. Omni has it since
// release 1.10, and the client library 1.9.3 does not: it keeps the field as bytes.
const disablePublicDiscovery protowire.Number = 5

// DisablesPublicDiscovery reports whether a cluster does not use the public discovery service. Features may be nil.
func DisablesPublicDiscovery(features *specs.ClusterSpec_Features) bool {
	if features == nil {
		return false
	}

	_, disabled := splitBool(features.ProtoReflect().GetUnknown(), disablePublicDiscovery)

	return disabled
}

// SetDisablePublicDiscovery sets what DisablesPublicDiscovery returns, and leaves every other unknown field as it is. It changes
// no byte if that is the value already: a false may be there or not.
func SetDisablePublicDiscovery(features *specs.ClusterSpec_Features, value bool) {
	message := features.ProtoReflect()

	rest, is := splitBool(message.GetUnknown(), disablePublicDiscovery)
	if is == value {
		return
	}

	if value {
		rest = protowire.AppendVarint(protowire.AppendTag(rest, disablePublicDiscovery, protowire.VarintType), 1)
	}

	message.SetUnknown(rest)
}

// splitBool returns the value of a bool among encoded fields, and the other fields. As in every message of protobuf, the last
// value counts if there are several, a field that is missing is false, and one of another type is not this one. Of bytes that
// cannot be read, all are other fields.
func splitBool(fields []byte, number protowire.Number) (rest []byte, value bool) {
	for len(fields) > 0 {
		found, kind, length := protowire.ConsumeField(fields)
		if length < 0 {
			return append(rest, fields...), value
		}

		if found == number && kind == protowire.VarintType {
			_, _, tag := protowire.ConsumeTag(fields)
			bits, _ := protowire.ConsumeVarint(fields[tag:])
			value = bits != 0
		} else {
			rest = append(rest, fields[:length]...)
		}

		fields = fields[length:]
	}

	return rest, value
}
