package omni

import (
	"context"
	"fmt"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
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

// DeleteMarks takes the mark off a resource in memory.
func DeleteMarks(metadata *resource.Metadata) {
	for _, key := range []string{
		v1alpha1.MarkOwnerUID, v1alpha1.MarkHub, v1alpha1.MarkOwnerNamespace, v1alpha1.MarkOwnerName, v1alpha1.MarkManagementCluster,
	} {
		metadata.Annotations().Delete(key)
	}
}
