package omnisim

import (
	"context"
	"fmt"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// ReportRequested changes the number of requested machines in a cluster's status: one change, which clients see in one
// watch event, made when this returns. The engine restores the true number when anything else of the cluster changes.
// The cluster must have a status; the number is not checked against its sets.
func (s *Server) ReportRequested(cluster string, machines uint32) error {
	ctx := context.Background()

	current, err := find[*omni.ClusterStatus](ctx, s.resources, omni.NewClusterStatus(cluster).Metadata())
	if err != nil {
		return fmt.Errorf("read the status of cluster %s: %w", cluster, err)
	}

	if current == nil {
		return fmt.Errorf("cluster %s has no status", cluster)
	}

	err = put(ctx, s.resources, clusterStatusController, omni.NewClusterStatus(cluster), func(clusterStatus *omni.ClusterStatus) {
		// The engine's copy and the stored one may share the message.
		spec := clusterStatus.TypedSpec().Value.CloneVT()
		spec.GetMachines().Requested = machines
		clusterStatus.TypedSpec().Value = spec
	})
	if err != nil {
		return fmt.Errorf("change the status of cluster %s: %w", cluster, err)
	}

	return nil
}
