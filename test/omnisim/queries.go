package omnisim

import (
	"context"
	"fmt"
	"maps"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// ClusterView is the state of one cluster in an Omni, in plain values: for tests and demonstrations, which check Omni
// itself.
type ClusterView struct {
	// Exists reports whether the cluster exists; the rest is empty if it does not.
	Exists bool
	// Deleting reports whether the cluster is being torn down.
	Deleting bool
	// Phase of the cluster, such as RUNNING.
	Phase string
	// KubernetesVersion and TalosVersion are the configured ones, without a leading v.
	KubernetesVersion string
	TalosVersion      string
	// Labels and Annotations of the cluster.
	Labels      map[string]string
	Annotations map[string]string
	// Machines counts the machines of each machine set that is not being torn down, by the set's
	// ID: the cluster's name, a dash, and control-planes or the worker set's name.
	Machines map[string]int
	// Patches holds the IDs of the configuration patches of the cluster.
	Patches []string
}

// ReadCluster reads a cluster from any Omni's state, simulated or real.
func ReadCluster(ctx context.Context, st state.State, name string) (ClusterView, error) {
	cluster, err := safe.StateGetByID[*omni.Cluster](ctx, st, name)
	if state.IsNotFoundError(err) {
		return ClusterView{}, nil
	} else if err != nil {
		return ClusterView{}, fmt.Errorf("read cluster %s: %w", name, err)
	}

	view := ClusterView{
		Exists:            true,
		Deleting:          cluster.Metadata().Phase() == resource.PhaseTearingDown,
		KubernetesVersion: cluster.TypedSpec().Value.GetKubernetesVersion(),
		TalosVersion:      cluster.TypedSpec().Value.GetTalosVersion(),
		Labels:            maps.Clone(cluster.Metadata().Labels().Raw()),
		Annotations:       maps.Clone(cluster.Metadata().Annotations().Raw()),
		Machines:          map[string]int{},
	}

	if status, err := safe.StateGetByID[*omni.ClusterStatus](ctx, st, name); err == nil {
		view.Phase = status.TypedSpec().Value.GetPhase().String()
	}

	return view, view.readParts(ctx, st, name)
}

func (v *ClusterView) readParts(ctx context.Context, st state.State, name string) error {
	ofCluster := state.WithLabelQuery(resource.LabelEqual(omni.LabelCluster, name))

	sets, err := safe.StateListAll[*omni.MachineSet](ctx, st, ofCluster)
	if err != nil {
		return fmt.Errorf("list machine sets of %s: %w", name, err)
	}

	for set := range sets.All() {
		if set.Metadata().Phase() == resource.PhaseRunning {
			v.Machines[set.Metadata().ID()] = 0
		}
	}

	nodes, err := safe.StateListAll[*omni.MachineSetNode](ctx, st, ofCluster)
	if err != nil {
		return fmt.Errorf("list machine set nodes of %s: %w", name, err)
	}

	for node := range nodes.All() {
		if set, ok := node.Metadata().Labels().Get(omni.LabelMachineSet); ok && node.Metadata().Phase() == resource.PhaseRunning {
			v.Machines[set]++
		}
	}

	patches, err := safe.StateListAll[*omni.ConfigPatch](ctx, st, ofCluster)
	if err != nil {
		return fmt.Errorf("list config patches of %s: %w", name, err)
	}

	for patch := range patches.All() {
		v.Patches = append(v.Patches, patch.Metadata().ID())
	}

	return nil
}

// View calls ReadCluster for this server.
func (s *Server) View(name string) (ClusterView, error) {
	return ReadCluster(context.Background(), s.State(), name)
}

// CreateForeignCluster creates a cluster without our operator. It is not recorded in the journal.
func CreateForeignCluster(ctx context.Context, st state.State, name, kubernetes, talos string) error {
	cluster := omni.NewCluster(name)
	cluster.TypedSpec().Value.KubernetesVersion = kubernetes
	cluster.TypedSpec().Value.TalosVersion = talos

	if err := st.Create(ctx, cluster); err != nil {
		return fmt.Errorf("create foreign cluster %s: %w", name, err)
	}

	return nil
}

// AnnotateCluster sets an annotation of a cluster without our operator, as Omni's UI does for a lock
// (omni.sidero.dev/cluster-locked). An empty value still sets it.
func AnnotateCluster(ctx context.Context, st state.State, name, key, value string) error {
	_, err := safe.StateUpdateWithConflicts(ctx, st, omni.NewCluster(name).Metadata(), func(cluster *omni.Cluster) error {
		cluster.Metadata().Annotations().Set(key, value)

		return nil
	})
	if err != nil {
		return fmt.Errorf("annotate cluster %s: %w", name, err)
	}

	return nil
}

// SetKubernetesVersion changes a cluster without our operator: drift.
func SetKubernetesVersion(ctx context.Context, st state.State, name, version string) error {
	_, err := safe.StateUpdateWithConflicts(ctx, st, omni.NewCluster(name).Metadata(), func(cluster *omni.Cluster) error {
		cluster.TypedSpec().Value.KubernetesVersion = version

		return nil
	})
	if err != nil {
		return fmt.Errorf("change cluster %s: %w", name, err)
	}

	return nil
}

// RemoveAnnotation removes an annotation of a cluster without our operator.
func RemoveAnnotation(ctx context.Context, st state.State, name, key string) error {
	_, err := safe.StateUpdateWithConflicts(ctx, st, omni.NewCluster(name).Metadata(), func(cluster *omni.Cluster) error {
		cluster.Metadata().Annotations().Delete(key)

		return nil
	})
	if err != nil {
		return fmt.Errorf("remove an annotation of cluster %s: %w", name, err)
	}

	return nil
}

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
