package omni

import (
	"sync"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/resource/protobuf"
	"github.com/cosi-project/runtime/pkg/resource/typed"
	"github.com/siderolabs/omni/client/pkg/omni/resources"
	"google.golang.org/protobuf/encoding/protowire"
)

// Types that Omni serves from 1.11 on. Our client library, of 1.9.3, does not know them.
const (
	// MachineInstallDiskConfigType is the type of MachineInstallDiskConfig.
	MachineInstallDiskConfigType = resource.Type("MachineInstallDiskConfigs.omni.sidero.dev")
	// MachineInstallDiskStatusType says which disk Omni chose for a machine, in the namespace default.
	MachineInstallDiskStatusType = resource.Type("MachineInstallDiskStatuses.omni.sidero.dev")
	// KubernetesHealthCheckStatusType is the type of KubernetesHealthCheckStatus.
	KubernetesHealthCheckStatusType = resource.Type("KubernetesHealthCheckStatuses.omni.sidero.dev")
)

// MachineInstallDiskConfig is a user's choice of the disk that Talos is installed on. Its ID is the UUID of the machine,
// and it has no cluster label.
type MachineInstallDiskConfig = typed.Resource[MachineInstallDiskConfigSpec, MachineInstallDiskConfigExtension]

// MachineInstallDiskConfigSpec has exactly one of DiskSelector and Disk; Omni refuses both and neither.
type MachineInstallDiskConfigSpec struct {
	// DiskSelector is a CEL expression about a disk that is true or false. Its field number in Omni's message is 1.
	DiskSelector string `yaml:"diskselector,omitempty"`
	// Disk is the path of a device, such as /dev/sda. Its field number is 2.
	Disk string `yaml:"disk,omitempty"`
	// Unknown has the other fields of Omni's message as they came: those of a newer Omni. An update keeps them.
	Unknown string `yaml:"-"`
}

// texts are the fields of the message: the first has number 1.
func (s *MachineInstallDiskConfigSpec) texts() []*string { return []*string{&s.DiskSelector, &s.Disk} }

// MarshalBinary encodes Omni's message; it returns no error.
func (s *MachineInstallDiskConfigSpec) MarshalBinary() ([]byte, error) {
	var wire []byte

	for i, text := range s.texts() {
		if *text != "" {
			wire = protowire.AppendString(protowire.AppendTag(wire, protowire.Number(i+1), protowire.BytesType), *text)
		}
	}

	return append(wire, s.Unknown...), nil
}

// UnmarshalBinary decodes Omni's message, or returns an error if it is malformed.
func (s *MachineInstallDiskConfigSpec) UnmarshalBinary(wire []byte) error {
	*s = MachineInstallDiskConfigSpec{}

	var unknown []byte

	for texts := s.texts(); len(wire) > 0; {
		number, kind, length := protowire.ConsumeField(wire)
		if length < 0 {
			return protowire.ParseError(length)
		}

		if int(number) <= len(texts) && kind == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(wire)
			*texts[number-1], _ = protowire.ConsumeString(wire[tag:])
		} else {
			unknown = append(unknown, wire[:length]...)
		}

		wire = wire[length:]
	}

	s.Unknown = string(unknown)

	return nil
}

// DeepCopy returns the value itself: it has no references.
func (s MachineInstallDiskConfigSpec) DeepCopy() MachineInstallDiskConfigSpec { return s }

// Fields returns what is set, by the names of a template.
func (s *MachineInstallDiskConfigSpec) Fields() map[string]string {
	fields := map[string]string{}

	for name, value := range map[string]string{"disk": s.Disk, "diskSelector": s.DiskSelector} {
		if value != "" {
			fields[name] = value
		}
	}

	return fields
}

// MachineInstallDiskConfigExtension describes the type to the library.
type MachineInstallDiskConfigExtension struct{}

// ResourceDefinition implements typed.Extension.
func (MachineInstallDiskConfigExtension) ResourceDefinition() meta.ResourceDefinitionSpec {
	return meta.ResourceDefinitionSpec{Type: MachineInstallDiskConfigType, DefaultNamespace: resources.DefaultNamespace}
}

// NewMachineInstallDiskConfig returns an empty choice for a machine.
func NewMachineInstallDiskConfig(machine string) *MachineInstallDiskConfig {
	RegisterTypes()

	return typed.NewResource[MachineInstallDiskConfigSpec, MachineInstallDiskConfigExtension](
		resource.NewMetadata(resources.DefaultNamespace, MachineInstallDiskConfigType, machine, resource.VersionUndefined),
		MachineInstallDiskConfigSpec{})
}

// RegisterTypes makes the library encode and decode our own types, which it keeps for the whole process. Whoever opens a
// connection calls it before the first call.
func RegisterTypes() { registerTypes() }

// An error would mean that the library has learned the type itself: a test reads one over the wire.
//
//nolint:gochecknoglobals // the registry that it fills is the library's
var registerTypes = sync.OnceFunc(func() {
	_ = protobuf.RegisterDynamic(MachineInstallDiskConfigType, &MachineInstallDiskConfig{})
	_ = protobuf.RegisterDynamic(KubernetesHealthCheckStatusType, &KubernetesHealthCheckStatus{})
})
