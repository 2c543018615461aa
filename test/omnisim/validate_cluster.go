package omnisim

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	operator "omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// Omni's default bounds of an etcd backup interval.
const (
	minBackupInterval = time.Hour
	maxBackupInterval = 24 * time.Hour
)

func (r rules) createCluster(ctx context.Context, cluster *omni.Cluster) []error {
	spec := cluster.TypedSpec().Value
	validator := omni.ClusterValidator{
		ID:                cluster.Metadata().ID(),
		KubernetesVersion: spec.KubernetesVersion,
		TalosVersion:      spec.TalosVersion,
		EncryptionEnabled: omni.GetEncryptionEnabled(cluster),
	}

	reasons := appendReason(nil, validator.Validate())
	reasons = appendReason(reasons, validateBackupInterval(cluster))
	reasons = appendReason(reasons, r.validateDiscovery(nil, cluster))
	reasons = appendReason(reasons, r.validatePublicDiscovery(ctx, nil, cluster))

	return appendReason(reasons, r.validateVersions(nil, cluster))
}

func (r rules) updateCluster(ctx context.Context, old, updated *omni.Cluster) []error {
	if updated.Metadata().Phase() == resource.PhaseTearingDown {
		return nil
	}

	// The update that removes the lock is accepted, with all of its other changes.
	if isClusterLocked(old) && isClusterLocked(updated) {
		return []error{fmt.Errorf("updating cluster configuration is not allowed: the cluster %q is locked", updated.Metadata().ID())}
	}

	before, after := old.TypedSpec().Value, updated.TypedSpec().Value
	sameTalos := before.TalosVersion == after.TalosVersion
	sameVersions := sameTalos && before.KubernetesVersion == after.KubernetesVersion
	validator := omni.ClusterValidator{
		ID:                         updated.Metadata().ID(),
		SkipClusterIDCheck:         true,
		KubernetesVersion:          after.KubernetesVersion,
		TalosVersion:               after.TalosVersion,
		EncryptionEnabled:          omni.GetEncryptionEnabled(updated),
		SkipTalosVersionCheck:      sameTalos,
		SkipKubernetesVersionCheck: sameVersions,
	}

	reasons := appendReason(nil, validator.Validate())

	if omni.GetEncryptionEnabled(old) != omni.GetEncryptionEnabled(updated) {
		reasons = append(reasons, errors.New("updating disk encryption settings is not allowed"))
	}

	reasons = appendReason(reasons, validateBackupInterval(updated))
	reasons = appendReason(reasons, r.validateDiscovery(old, updated))
	reasons = appendReason(reasons, r.validatePublicDiscovery(ctx, old, updated))

	if !sameVersions {
		reasons = appendReason(reasons, r.validateVersions(old, updated))
		reasons = appendReason(reasons, r.validateTalosDowngrade(ctx, updated))
	}

	if r.refuseConcurrentUpgrades || r.version.from(since14) {
		reasons = appendReason(reasons, r.validateOneUpgrade(ctx, old, updated))
	}

	return reasons
}

// validateVersions refuses versions that do not exist or are not compatible, and Kubernetes updates that are no upgrade
// path: a downgrade of a minor version or one that skips a minor version.
func (r rules) validateVersions(old, updated *omni.Cluster) error {
	spec := updated.TypedSpec().Value

	talos, ok := r.catalogue.talos(spec.TalosVersion)
	if !ok {
		return fmt.Errorf("invalid talos version %q: %w", spec.TalosVersion, missingVersion(spec.TalosVersion))
	}

	if old != nil {
		if before := old.TypedSpec().Value.KubernetesVersion; !isKubernetesUpgrade(before, spec.KubernetesVersion) {
			return fmt.Errorf("kubernetes version is not supported for upgrade to %q from %q", spec.KubernetesVersion, before)
		}
	}

	if !talos.runs(spec.KubernetesVersion) {
		return fmt.Errorf("invalid kubernetes version %q: is not compatible with talos version %q", spec.KubernetesVersion, spec.TalosVersion)
	}

	return nil
}

func missingVersion(version string) error {
	return fmt.Errorf("resource %s doesn't exist", omni.NewTalosVersion(version).Metadata())
}

// validateTalosDowngrade keeps a cluster at or above the minor version of Talos that it was created with.
func (r rules) validateTalosDowngrade(ctx context.Context, updated *omni.Cluster) error {
	created, err := find[*omni.ClusterConfigVersion](ctx, r.state, omni.NewClusterConfigVersion(updated.Metadata().ID()).Metadata())
	if err != nil || created == nil {
		return err
	}

	first := strings.TrimPrefix(created.TypedSpec().Value.Version, "v")
	if minor(updated.TypedSpec().Value.TalosVersion) < minor(first) {
		return fmt.Errorf("downgrading from version %q to %q is not supported", first, updated.TypedSpec().Value.TalosVersion)
	}

	return nil
}

// isKubernetesUpgrade reports whether the step is within a minor version or up by one.
func isKubernetesUpgrade(from, to string) bool {
	step := minor(to) - minor(from)

	return step == 0 || step == 1
}

// minor returns the minor number of a version such as 1.13.2 (with or without a v), or -1.
func minor(version string) int {
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(parts) < 2 {
		return -1
	}

	number, err := strconv.Atoi(parts[1])
	if err != nil {
		return -1
	}

	return number
}

func validateBackupInterval(cluster *omni.Cluster) error {
	backup := cluster.TypedSpec().Value.GetBackupConfiguration()
	if backup == nil {
		return nil
	}

	switch interval := backup.GetInterval().AsDuration(); {
	case interval < minBackupInterval:
		return fmt.Errorf("backup interval must be greater than %s, actual %s", minBackupInterval, interval)
	case interval > maxBackupInterval:
		return fmt.Errorf("backup interval must be less than %s, actual %s", maxBackupInterval, interval)
	}

	return nil
}

// validateDiscovery refuses the embedded discovery service unless this server runs it.
func (r rules) validateDiscovery(old, updated *omni.Cluster) error {
	was := old != nil && old.TypedSpec().Value.GetFeatures().GetUseEmbeddedDiscoveryService()
	if r.embeddedDiscovery || was || !updated.TypedSpec().Value.GetFeatures().GetUseEmbeddedDiscoveryService() {
		return nil
	}

	return errors.New("embedded discovery service is not enabled")
}

// validatePublicDiscovery refuses, since 1.10, to switch the public discovery service off for a cluster that was created
// with Talos before 1.14, or that has no other discovery service.
func (r rules) validatePublicDiscovery(ctx context.Context, old, updated *omni.Cluster) error {
	spec := updated.TypedSpec().Value
	if !r.version.from(since10) || !operator.DisablesPublicDiscovery(spec.GetFeatures()) {
		return nil
	}

	createdWith := spec.GetTalosVersion()

	if old != nil {
		first, err := find[*omni.ClusterConfigVersion](ctx, r.state, omni.NewClusterConfigVersion(updated.Metadata().ID()).Metadata())
		if err != nil {
			return err
		}

		if first != nil && first.TypedSpec().Value.GetVersion() != "" {
			createdWith = first.TypedSpec().Value.GetVersion()
		}
	}

	if minor(strings.TrimPrefix(createdWith, "v")) < 14 {
		return errors.New("the public discovery service can only be configured for clusters created with Talos 1.14 or newer")
	}

	if !spec.GetFeatures().GetUseEmbeddedDiscoveryService() {
		return errors.New("the discovery service cannot be disabled entirely: keep the public discovery service enabled or enable the embedded discovery service")
	}

	return nil
}

func (r rules) destroyCluster(ctx context.Context, cluster *omni.Cluster) error {
	if !isClusterLocked(cluster) {
		return nil
	}

	clusterStatus, err := find[*omni.ClusterStatus](ctx, r.state, omni.NewClusterStatus(cluster.Metadata().ID()).Metadata())
	if err != nil || clusterStatus == nil {
		return err
	}

	return fmt.Errorf("deletion is not allowed: the cluster %q is locked", cluster.Metadata().ID())
}

func isClusterLocked(cluster *omni.Cluster) bool {
	_, locked := cluster.Metadata().Annotations().Get(omni.ClusterLocked)

	return locked
}
