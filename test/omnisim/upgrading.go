package omnisim

import (
	"context"

	"github.com/cosi-project/runtime/pkg/safe"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// Upgrading returns the names of the clusters that should run another Kubernetes version than they do; a new cluster
// is one of them until it has its first. The errors are those of the state.
func (s *Server) Upgrading(ctx context.Context) ([]string, error) {
	clusters, err := safe.StateListAll[*omni.Cluster](ctx, s.State())
	if err != nil {
		return nil, err
	}

	upgrades, err := safe.StateListAll[*omni.KubernetesUpgradeStatus](ctx, s.State())
	if err != nil {
		return nil, err
	}

	runs := map[string]string{}

	for upgrade := range upgrades.All() {
		if spec := upgrade.TypedSpec().Value; spec.GetPhase() == specs.KubernetesUpgradeStatusSpec_Done {
			runs[upgrade.Metadata().ID()] = spec.GetLastUpgradeVersion()
		}
	}

	var names []string

	for cluster := range clusters.All() {
		if name := cluster.Metadata().ID(); runs[name] != cluster.TypedSpec().Value.GetKubernetesVersion() {
			names = append(names, name)
		}
	}

	return names, nil
}
