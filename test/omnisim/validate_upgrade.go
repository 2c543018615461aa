package omnisim

import (
	"context"
	"errors"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// validateOneUpgrade refuses a version that changes together with the other one, or while the upgrade of the other one is
// on its way.
func (r rules) validateOneUpgrade(ctx context.Context, old, updated *omni.Cluster) error {
	before, after := old.TypedSpec().Value, updated.TypedSpec().Value
	talos, kubernetes := before.TalosVersion != after.TalosVersion, before.KubernetesVersion != after.KubernetesVersion

	switch {
	case talos && kubernetes:
		return errors.New("the Talos and Kubernetes versions cannot be updated at the same time")
	case kubernetes:
		if upgrades, err := r.upgradesTalos(ctx, old); err != nil || upgrades {
			return errors.Join(err, errors.New("the Kubernetes version cannot be updated while a Talos upgrade is in progress"))
		}
	case talos:
		if upgrades, err := r.upgradesKubernetes(ctx, old); err != nil || upgrades {
			return errors.Join(err, errors.New("the Talos version cannot be updated while a Kubernetes upgrade is in progress"))
		}
	}

	return nil
}

func (r rules) upgradesTalos(ctx context.Context, cluster *omni.Cluster) (bool, error) {
	found, err := find[*omni.TalosUpgradeStatus](ctx, r.state, omni.NewTalosUpgradeStatus(cluster.Metadata().ID()).Metadata())
	if err != nil || found == nil {
		return false, err
	}

	spec := found.TypedSpec().Value
	isBusy := spec.Phase == specs.TalosUpgradeStatusSpec_Upgrading || spec.Phase == specs.TalosUpgradeStatusSpec_Reverting

	return isBusy || spec.LastUpgradeVersion != "" && spec.LastUpgradeVersion != cluster.TypedSpec().Value.TalosVersion, nil
}

// upgradesKubernetes is false for a new cluster until Kubernetes has its first version.
func (r rules) upgradesKubernetes(ctx context.Context, cluster *omni.Cluster) (bool, error) {
	found, err := find[*omni.KubernetesUpgradeStatus](ctx, r.state, omni.NewKubernetesUpgradeStatus(cluster.Metadata().ID()).Metadata())
	if err != nil || found == nil || found.TypedSpec().Value.LastUpgradeVersion == "" {
		return false, err
	}

	spec := found.TypedSpec().Value
	isBusy := spec.Phase == specs.KubernetesUpgradeStatusSpec_Upgrading || spec.Phase == specs.KubernetesUpgradeStatusSpec_Reverting

	return isBusy || spec.LastUpgradeVersion != cluster.TypedSpec().Value.KubernetesVersion, nil
}
