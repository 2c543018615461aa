package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"google.golang.org/protobuf/proto"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
)

// KindFree is the kind of a change that never waits for a rollout.
const KindFree v1alpha1.ChangeKind = ""

// kindOf returns the kind of a step. A change of the configuration or the image of machines counts only if such
// machines exist now: whether Talos reboots them cannot be predicted. The destroy of a Cluster is free: a deletion has
// rules of its own.
func (b planBuilder) kindOf(s step) v1alpha1.ChangeKind {
	switch s.change.Type {
	case omnires.ClusterType:
		return versionKind(s)
	case omnires.MachineSetType, omnires.MachineSetNodeType:
		return membershipKind(s)
	case omni.MachineInstallDiskConfigType:
		if s.change.Action == ActionUpdate && sameSpec(s.old, s.new) {
			return KindFree // whose it is
		}

		return b.ifMachines(s, v1alpha1.ChangeMachineConfig)
	case omnires.ConfigPatchType:
		return b.ifMachines(s, v1alpha1.ChangeMachineConfig)
	case omnires.ExtensionsConfigurationType, omnires.KernelArgsType:
		return b.ifMachines(s, v1alpha1.ChangeMachineImage)
	case TypeManifestGroup:
		return v1alpha1.ChangeManifests
	default:
		return KindFree
	}
}

// versionKind returns the kind of an update of a Cluster, which changes one version at most.
func versionKind(s step) v1alpha1.ChangeKind {
	old, hadOld := s.old.(*omnires.Cluster)
	updated, hasNew := s.new.(*omnires.Cluster)

	if !hadOld || !hasNew {
		return KindFree
	}

	was, is := old.TypedSpec().Value, updated.TypedSpec().Value

	switch {
	case was.GetKubernetesVersion() != is.GetKubernetesVersion():
		return v1alpha1.ChangeKubernetesVersion
	case was.GetTalosVersion() != is.GetTalosVersion():
		return v1alpha1.ChangeTalosVersion
	default:
		return KindFree
	}
}

// membershipKind returns the kind of a change of a machine set or of a machine in it.
func membershipKind(s step) v1alpha1.ChangeKind {
	switch {
	case s.change.Destructive:
		return v1alpha1.ChangeMachineRemoval
	case s.change.Type == omnires.MachineSetNodeType && isLocked(s.old) && s.change.Action == ActionUpdate && !isLocked(s.new):
		return v1alpha1.ChangeMachineConfig // the updates that the lock held back begin
	default:
		return KindFree
	}
}

func isLocked(item resource.Resource) bool {
	if item == nil {
		return false
	}

	_, locked := item.Metadata().Annotations().Get(omnires.MachineLocked)

	return locked
}

// ifMachines returns the kind if the step affects machines that the cluster has now, where the resource is or where it was,
// else KindFree.
func (b planBuilder) ifMachines(s step, kind v1alpha1.ChangeKind) v1alpha1.ChangeKind {
	if b.hasMachine(func(m member) bool {
		return s.old != nil && placeOf(s.old).covers(m) || s.new != nil && placeOf(s.new).covers(m)
	}) {
		return kind
	}

	return KindFree
}

// hasMachine reports whether a filter accepts one of the machines that the cluster has now.
func (b planBuilder) hasMachine(filter func(member) bool) bool {
	for set, nodes := range b.nodes {
		if slices.ContainsFunc(nodes, func(node string) bool { return filter(member{set, node}) }) {
			return true
		}
	}

	return false
}

// digestOf identifies a step with what it writes: 32 hexadecimal digits that stay the same as long as the change does.
// Content that is compressed differently counts as the same.
func digestOf(s step) string {
	parts := []string{string(s.change.Kind), string(s.change.Action), s.change.Key()}

	if s.new != nil {
		parts = append(parts, written(s)...)
	}

	hash := sha256.New()
	for _, part := range parts {
		// The length prefix separates the parts.
		hash.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}

	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// written returns what a create or an update writes, without what it keeps of others: for a part of a Cluster only the
// version, so that the other version makes no difference.
func written(s step) []string {
	if s.change.Part != "" {
		return []string{s.change.To}
	}

	ours := s.new
	if s.asked != nil {
		ours = s.asked
	}

	return append(pairs(ours.Metadata().Labels().Raw(), ours.Metadata().Annotations().Raw()), specOf(ours)...)
}

func pairs(all ...map[string]string) []string {
	var found []string

	for _, some := range all {
		for _, key := range slices.Sorted(maps.Keys(some)) {
			found = append(found, key+"="+some[key])
		}

		found = append(found, "")
	}

	return found
}

// content returns the text inside a resource, decompressed.
func content(item resource.Resource) (text string, readable bool) {
	switch typed := item.(type) {
	case *omnires.ConfigPatch:
		text, err := bounds.Inflate(typed.TypedSpec().Value)

		return text, err == nil
	case *omnires.KubernetesManifestGroup:
		text, err := bounds.Inflate(typed.TypedSpec().Value)

		return text, err == nil
	case *omnires.KubernetesHealthCheck:
		return typed.TypedSpec().Value.GetJob(), true
	default:
		return "", false
	}
}

// withoutText returns a copy of a resource without the text that it holds, if it is of a type that holds one.
func withoutText(item resource.Resource) (resource.Resource, bool) {
	switch bare := item.DeepCopy().(type) {
	case *omnires.ConfigPatch:
		return bare, bare.TypedSpec().Value.SetUncompressedData(nil) == nil
	case *omnires.KubernetesManifestGroup:
		return bare, bare.TypedSpec().Value.SetUncompressedData(nil) == nil
	case *omnires.KubernetesHealthCheck:
		bare.TypedSpec().Value.Job = ""

		return bare, true
	default:
		return nil, false
	}
}

// specOf returns the parts of a spec for a digest: the text inside, decompressed, if there is one.
func specOf(item resource.Resource) []string {
	text, unpacked := content(item)

	switch typed := item.(type) {
	case *omnires.ConfigPatch:
		if unpacked {
			return []string{text}
		}
	case *omnires.KubernetesManifestGroup:
		if unpacked {
			return []string{text, typed.TypedSpec().Value.GetMode().String()}
		}
	case *omni.MachineInstallDiskConfig:
		return []string{typed.TypedSpec().Disk, typed.TypedSpec().DiskSelector}
	}

	message, ok := protoOf(item)
	if !ok {
		return nil
	}

	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
	if err != nil {
		return []string{"cannot be written: " + strings.TrimSpace(err.Error())}
	}

	return []string{string(data)}
}

// protoOf returns the message that the spec of a resource is; false if it is none.
func protoOf(item resource.Resource) (proto.Message, bool) {
	spec, ok := item.Spec().(interface{ GetValue() proto.Message })
	if !ok {
		return nil, false
	}

	return spec.GetValue(), true
}
