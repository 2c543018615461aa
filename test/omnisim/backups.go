package omnisim

import (
	"context"
	"fmt"
	"time"

	"github.com/cosi-project/runtime/pkg/state"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// AddEtcdBackup makes a snapshot of the etcd of a cluster known, and returns the cluster's UUID. The snapshot has no content: only
// its name is compared with the bootstrap spec of a new control plane.
func (s *Server) AddEtcdBackup(ctx context.Context, cluster, snapshot string) (clusterUUID string, err error) {
	id, err := find[*omni.ClusterUUID](ctx, s.resources, omni.NewClusterUUID(cluster).Metadata())
	if err != nil {
		return "", err
	}

	if id == nil {
		return "", fmt.Errorf("cluster %q has no UUID", cluster)
	}

	now := time.Now()
	backup := omni.NewEtcdBackup(cluster, now)
	backup.Metadata().Labels().Set(omni.LabelCluster, cluster)
	backup.TypedSpec().Value.Snapshot, backup.TypedSpec().Value.CreatedAt = snapshot, timestamppb.New(now)

	return id.TypedSpec().Value.GetUuid(), s.resources.Create(ctx, backup, state.WithCreateOwner("EtcdBackup"))
}
