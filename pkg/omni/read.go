package omni

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// Marks are the values of an owner's mark: the annotations on a Cluster in Omni that name its owner. The UID and the
// hub identify the owner; the others are information for people.
type Marks struct {
	UID string
	// Hub is the ID of the hub that wrote the mark; empty in old marks.
	Hub               string
	Namespace         string
	Name              string
	ManagementCluster string
}

// Live is the state of a cluster in Omni, read before a plan.
type Live struct {
	// Exists is false if Omni has no such cluster; then only UUID can be set.
	Exists bool
	// TearingDown is true while Omni destroys the cluster.
	TearingDown bool
	// TearingDownSince is when the teardown was requested (the last change of the resource); zero if TearingDown is false.
	TearingDownSince time.Time
	// Locked is true if the cluster carries omni.sidero.dev/cluster-locked.
	Locked bool
	// Created is when Omni created the resource.
	Created time.Time
	// UUID is the cluster's identity: a cluster that was created again under the same name has another one. Empty for a
	// moment after creation.
	UUID string
	// Marks is the owner's mark; its strings are empty if there is none.
	Marks Marks
}

// Inspect reads a cluster's Live state. A missing cluster is not an error.
func Inspect(ctx context.Context, st state.State, cluster string) (Live, error) {
	var live Live

	found, err := ReadCluster(ctx, st, cluster)
	if err != nil {
		return Live{}, err
	}

	if found != nil {
		live = LiveOf(found)
	}

	if live.UUID, err = ReadUUID(ctx, st, cluster); err != nil {
		return Live{}, err
	}

	return live, nil
}

// ReadUUID reads the ID that Omni gave a cluster; empty if there is none, or not yet. Errors are those of the state.
func ReadUUID(ctx context.Context, st state.State, cluster string) (string, error) {
	identity, err := safe.StateGetByID[*omnires.ClusterUUID](ctx, st, cluster)

	switch {
	case state.IsNotFoundError(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read UUID of cluster %q: %w", cluster, err)
	default:
		return identity.TypedSpec().Value.GetUuid(), nil
	}
}

// LiveOf returns what a Cluster itself holds: all but the UUID.
func LiveOf(found *omnires.Cluster) Live {
	metadata := found.Metadata()

	live := Live{
		Exists:      true,
		TearingDown: metadata.Phase() == resource.PhaseTearingDown,
		Created:     metadata.Created(),
		Marks:       MarksOf(metadata),
	}

	_, live.Locked = metadata.Annotations().Get(omnires.ClusterLocked)

	if live.TearingDown {
		live.TearingDownSince = metadata.Updated()
	}

	return live
}

// MarksOf reads the mark on a resource.
func MarksOf(metadata *resource.Metadata) Marks {
	mark := func(key string) string {
		value, _ := metadata.Annotations().Get(key)

		return value
	}

	return Marks{
		UID:               mark(v1alpha1.MarkOwnerUID),
		Hub:               mark(v1alpha1.MarkHub),
		Namespace:         mark(v1alpha1.MarkOwnerNamespace),
		Name:              mark(v1alpha1.MarkOwnerName),
		ManagementCluster: mark(v1alpha1.MarkManagementCluster),
	}
}

// DeleteMarks takes the mark off a resource in memory, and the record of what was applied to it.
func DeleteMarks(metadata *resource.Metadata) {
	for _, key := range []string{
		v1alpha1.MarkOwnerUID, v1alpha1.MarkHub, v1alpha1.MarkOwnerNamespace, v1alpha1.MarkOwnerName, v1alpha1.MarkManagementCluster,
		v1alpha1.MarkApplied,
	} {
		metadata.Annotations().Delete(key)
	}
}

// ResourceKey names a resource of Omni's default namespace.
type ResourceKey struct {
	ResourceType resource.Type
	ID           resource.ID
}

// KeyOf returns the key of a resource.
func KeyOf(item resource.Resource) ResourceKey {
	return ResourceKey{item.Metadata().Type(), item.Metadata().ID()}
}

// ListOf lists a cluster's resources of one type.
func ListOf(ctx context.Context, st state.State, resourceType resource.Type, cluster string) ([]resource.Resource, error) {
	list, err := st.List(ctx,
		resource.NewMetadata(resources.DefaultNamespace, resourceType, "", resource.VersionUndefined),
		state.WithLabelQuery(resource.LabelEqual(omnires.LabelCluster, cluster)),
	)
	if err != nil {
		return nil, fmt.Errorf("list %s of cluster %q: %w", KindOf(resourceType), cluster, err)
	}

	return list.Items, nil
}

// ReadCluster reads a Cluster. It returns nil without an error if there is none.
func ReadCluster(ctx context.Context, st state.State, cluster string) (*omnires.Cluster, error) {
	found, err := safe.StateGetByID[*omnires.Cluster](ctx, st, cluster)
	if state.IsNotFoundError(err) {
		return nil, nil //nolint:nilnil // none is no error
	}

	if err != nil {
		return nil, fmt.Errorf("read cluster %q: %w", cluster, err)
	}

	return found, nil
}

// CallTimeout is the timeout of every unary call and every List. A caller's earlier deadline wins. Calls take
// milliseconds; an Omni that is silent altogether is detected earlier (SuspectAfter, ProbeTimeout).
const CallTimeout = 15 * time.Second

// notFound is an error that state.IsNotFoundError matches.
type notFound struct{ error }

// NotFoundError implements the marker interface.
func (notFound) NotFoundError() {}

// NotFoundf returns an error that state.IsNotFoundError matches.
func NotFoundf(format string, args ...any) error {
	return notFound{fmt.Errorf(format, args...)}
}

// SetSize is how many machines a MachineSet requests, and from where.
type SetSize struct {
	Class     string // empty: a static set, which lists its machines
	Unlimited bool
	Count     uint32
}

// SizeOf returns the size of a MachineSet; nodes is the number of its listed machines.
func SizeOf(set *omnires.MachineSet, nodes int) SetSize {
	allocation := omnires.GetMachineAllocation(set)
	if allocation == nil {
		return SetSize{Count: uint32(nodes)} //nolint:gosec // the length of a list
	}

	return SetSize{
		Class:     allocation.GetName(),
		Unlimited: allocation.GetAllocationType() == specs.MachineSetSpec_MachineAllocation_Unlimited,
		Count:     allocation.GetMachineCount(),
	}
}

// String returns the form that plans show and hash.
func (s SetSize) String() string {
	switch {
	case s.Class == "":
		return strconv.FormatUint(uint64(s.Count), 10)
	case s.Unlimited:
		return s.Class + "/unlimited"
	default:
		return fmt.Sprintf("%s/%d", s.Class, s.Count)
	}
}

// Shrinks returns why a change from one size to another removes machines, or "". Between static sizes it returns "":
// each lost machine is a teardown of its own MachineSetNode.
func Shrinks(from, to SetSize) string {
	switch {
	case from.Class == "":
		return ""
	case to.Class == "":
		return "leaves its machine class"
	case from.Class != to.Class:
		return "changes its machine class"
	case from.Unlimited && !to.Unlimited:
		return "goes from unlimited to a number"
	case !from.Unlimited && !to.Unlimited && to.Count < from.Count:
		return "lowers its machine count"
	default:
		return ""
	}
}

// maxBackupBytes bounds what BackupOf returns: Omni takes names of 4096 bytes.
const maxBackupBytes = 512

// BackupOf returns the backup from which Omni makes the etcd of a control plane's MachineSet, as the UUID of the cluster that made it,
// a slash and the name of the snapshot; empty if its etcd begins empty. It is bounded foreign text.
func BackupOf(set *omnires.MachineSet) string {
	spec := set.TypedSpec().Value.GetBootstrapSpec()
	if spec == nil {
		return ""
	}

	return redact.Bounded(spec.GetClusterUuid()+"/"+spec.GetSnapshot(), maxBackupBytes)
}
