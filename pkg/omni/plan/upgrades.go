package plan

import (
	"context"
	"fmt"

	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/template"
	talosapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/compatibility"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// upgrades says which upgrades of a cluster Omni has not finished. Releases of Omni after 1.9.3 refuse a version of
// Talos or Kubernetes that changes together with the other one, or while the upgrade of the other one is on its way.
type upgrades struct{ talos, kubernetes bool }

// readUpgrades reads the upgrades of the cluster whose version one of the updates changes. If none does, it reads nothing:
// what a comparison reads decides when it is made again.
func readUpgrades(ctx context.Context, st state.State, updates []template.UpdateChange) (upgrades, error) {
	for _, update := range updates {
		old, wasCluster := update.Old.(*omnires.Cluster)
		updated, isCluster := update.New.(*omnires.Cluster)

		if wasCluster && isCluster && len(versionChanges(old, updated)) > 0 {
			return upgradesOf(ctx, st, old)
		}
	}

	return upgrades{}, nil
}

// upgradesOf decides as Omni does.
func upgradesOf(ctx context.Context, st state.State, cluster *omnires.Cluster) (upgrades, error) {
	id, wanted := cluster.Metadata().ID(), cluster.TypedSpec().Value

	talos, err := readStatus[*omnires.TalosUpgradeStatus](ctx, st, id)
	if err != nil {
		return upgrades{}, err
	}

	kubernetes, err := readStatus[*omnires.KubernetesUpgradeStatus](ctx, st, id)
	if err != nil {
		return upgrades{}, err
	}

	var found upgrades

	if talos != nil {
		spec := talos.TypedSpec().Value
		found.talos = spec.GetPhase() == specs.TalosUpgradeStatusSpec_Upgrading || spec.GetPhase() == specs.TalosUpgradeStatusSpec_Reverting ||
			spec.GetLastUpgradeVersion() != "" && spec.GetLastUpgradeVersion() != wanted.GetTalosVersion()
	}

	// Without a version, Kubernetes is being set up: that is no upgrade.
	if kubernetes != nil && kubernetes.TypedSpec().Value.GetLastUpgradeVersion() != "" {
		spec := kubernetes.TypedSpec().Value
		found.kubernetes = spec.GetPhase() == specs.KubernetesUpgradeStatusSpec_Upgrading || spec.GetPhase() == specs.KubernetesUpgradeStatusSpec_Reverting ||
			spec.GetLastUpgradeVersion() != wanted.GetKubernetesVersion()
	}

	return found, nil
}

// readStatus reads a resource by ID. It returns nil without an error if there is none.
func readStatus[T meta.ResourceWithRD](ctx context.Context, st state.State, id string) (T, error) {
	found, err := safe.StateGetByID[T](ctx, st, id)
	if err != nil && !state.IsNotFoundError(err) {
		return found, fmt.Errorf("read the upgrades of cluster %q: %w", id, err)
	}

	return found, nil
}

// keep reports whether the upgrade of the other version keeps a version of this kind waiting. It does not if this kind is
// being upgraded, too, as an Omni of release 1.9.3 lets others begin both: one of them may have to be changed for either
// to end, and Omni decides.
func (u upgrades) keep(kind v1alpha1.ChangeKind) bool {
	if kind == v1alpha1.ChangeTalosVersion {
		return u.kubernetes && !u.talos
	}

	return u.talos && !u.kubernetes
}

// waitReason says what a version waits for.
func waitReason(version Change) string {
	name, other := "Talos", "Kubernetes"
	if version.Part == v1alpha1.ChangeKubernetesVersion {
		name, other = other, name
	}

	return fmt.Sprintf("%s v%s waits until Omni has finished the %s upgrade", name, version.To, other)
}

// laterOf returns which of two versions that may both be written waits for the other one: that of Kubernetes, unless the
// new Talos does not run the old Kubernetes, and the old Talos runs the new one. A Talos that is not known here goes first.
func laterOf(talos, kubernetes Change) v1alpha1.ChangeKind {
	if runs(talos.To, kubernetes.To) && !runs(talos.To, kubernetes.From) && runs(talos.From, kubernetes.To) {
		return v1alpha1.ChangeTalosVersion
	}

	return v1alpha1.ChangeKubernetesVersion
}

// runs reports whether a version of Talos is known to run a version of Kubernetes.
func runs(talos, kubernetes string) bool {
	host, err := compatibility.ParseTalosVersion(&talosapi.VersionInfo{Tag: talos})
	if err != nil {
		return false
	}

	version, err := compatibility.ParseKubernetesVersion(kubernetes)

	return err == nil && version.SupportedWith(host) == nil
}
