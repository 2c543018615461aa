package plan

import (
	"slices"

	"github.com/cosi-project/runtime/pkg/resource"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
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
