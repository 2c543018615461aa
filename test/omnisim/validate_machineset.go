package omnisim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/cosi/labels"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

func (r rules) createMachineSet(ctx context.Context, set *omni.MachineSet) error {
	name := clusterOf(set)

	cluster, err := find[*omni.Cluster](ctx, r.state, omni.NewCluster(name).Metadata())

	switch {
	case err != nil:
		return err
	case cluster == nil:
		return fmt.Errorf("the cluster %q does not exist", name)
	case cluster.Metadata().Phase() == resource.PhaseTearingDown:
		return fmt.Errorf("the cluster %q is tearing down", name)
	case isClusterLocked(cluster):
		return fmt.Errorf("adding machine set %q to the cluster %q is not allowed: the cluster is locked", set.Metadata().ID(), name)
	}

	if err = validateSetRole(set); err != nil {
		return err
	}

	if err = r.validateBootstrap(ctx, set); err != nil {
		return err
	}

	if err = r.validateAllocation(ctx, nil, set); err != nil {
		return err
	}

	return validateSetID(name, set)
}

func (r rules) updateMachineSet(ctx context.Context, old, updated *omni.MachineSet) error {
	name := clusterOf(updated)

	cluster, err := find[*omni.Cluster](ctx, r.state, omni.NewCluster(name).Metadata())

	switch {
	case err != nil:
		return err
	case cluster == nil && updated.Metadata().Phase() == resource.PhaseTearingDown:
		return nil
	case cluster == nil:
		return fmt.Errorf("the cluster %q does not exist", name)
	case isClusterLocked(cluster) && updated.Metadata().Phase() == resource.PhaseRunning:
		return fmt.Errorf("updating machine set %q on the cluster %q is not allowed: the cluster is locked", updated.Metadata().ID(), name)
	}

	if err = validateSetRole(updated); err != nil {
		return err
	}

	if !updated.TypedSpec().Value.GetBootstrapSpec().EqualVT(old.TypedSpec().Value.GetBootstrapSpec()) {
		return errors.New("bootstrap spec is immutable after creation")
	}

	if err = r.validateAllocation(ctx, old, updated); err != nil {
		return err
	}

	return r.validateManagementMode(ctx, old, updated)
}

func validateSetRole(set *omni.MachineSet) error {
	_, worker := set.Metadata().Labels().Get(omni.LabelWorkerRole)
	if worker || isControlPlane(set) {
		return nil
	}

	return fmt.Errorf("machine set must have either %q or %q label", omni.LabelControlPlaneRole, omni.LabelWorkerRole)
}

// validateBootstrap checks that a cluster is bootstrapped once, and that the backup exists; see Server.AddEtcdBackup.
func (r rules) validateBootstrap(ctx context.Context, set *omni.MachineSet) error {
	bootstrap := set.TypedSpec().Value.GetBootstrapSpec()

	if !isControlPlane(set) {
		if bootstrap != nil {
			return errors.New("bootstrap spec is not allowed for worker machine sets")
		}

		return nil
	}

	done, err := find[*omni.ClusterBootstrapStatus](ctx, r.state, omni.NewClusterBootstrapStatus(clusterOf(set)).Metadata())

	switch {
	case err != nil:
		return err
	case done != nil && done.TypedSpec().Value.GetBootstrapped():
		return errors.New("adding control plane machine set to an already bootstrapped cluster is not allowed")
	case bootstrap != nil:
		return r.validateBackup(ctx, bootstrap)
	}

	return nil
}

func (r rules) validateBackup(ctx context.Context, bootstrap *specs.MachineSetSpec_BootstrapSpec) error {
	ids, err := safe.StateListAll[*omni.ClusterUUID](ctx, r.state,
		state.WithLabelQuery(resource.LabelEqual(omni.LabelClusterUUID, bootstrap.GetClusterUuid())))

	switch {
	case err != nil:
		return err
	case ids.Len() == 0:
		return fmt.Errorf("invalid cluster UUID %q", bootstrap.GetClusterUuid())
	}

	backups, err := listOf(ctx, r.state, omni.NewEtcdBackup("", time.Time{}), ids.Get(0).Metadata().ID())
	if err != nil {
		return err
	}

	for _, backup := range backups {
		if backup.TypedSpec().Value.GetSnapshot() == bootstrap.GetSnapshot() {
			return nil
		}
	}

	return fmt.Errorf("failed to get backup: snapshot %q was not found", bootstrap.GetSnapshot())
}

// validateAllocation checks that the machine class exists when a set begins to use it.
func (r rules) validateAllocation(ctx context.Context, old, updated *omni.MachineSet) error {
	allocation := omni.GetMachineAllocation(updated)

	switch {
	case allocation == nil:
		return nil
	case allocation.Name == "":
		return errors.New("machine allocation source name is not set")
	case allocation.MachineCount != 0 && allocation.AllocationType != specs.MachineSetSpec_MachineAllocation_Static:
		return errors.New("machine count can be set only if static allocation type is used")
	}

	if old != nil {
		before := omni.GetMachineAllocation(old)
		if before == nil || before.Name == allocation.Name {
			return nil
		}
	}

	class, err := find[*omni.MachineClass](ctx, r.state, omni.NewMachineClass(allocation.Name).Metadata())

	switch {
	case err != nil:
		return err
	case class == nil:
		return fmt.Errorf("machine class with name %q doesn't exist", allocation.Name)
	case class.TypedSpec().Value.AutoProvision != nil && allocation.AllocationType == specs.MachineSetSpec_MachineAllocation_Unlimited:
		return fmt.Errorf("machine class %q is using autoprovision, so unlimited machine set allocation is not supported", allocation.Name)
	}

	return nil
}

// validateManagementMode refuses to switch a set with machines between listed machines and a class.
func (r rules) validateManagementMode(ctx context.Context, old, updated *omni.MachineSet) error {
	before, after := omni.GetMachineAllocation(old) != nil, omni.GetMachineAllocation(updated) != nil
	if before == after {
		return nil
	}

	nodes, err := safe.StateListAll[*omni.MachineSetNode](ctx, r.state,
		state.WithLabelQuery(resource.LabelEqual(omni.LabelMachineSet, updated.Metadata().ID())))
	if err != nil || nodes.Len() == 0 {
		return err
	}

	if after {
		return errors.New("machine set is not empty and is using manual nodes management, updating to machine class mode is not allowed")
	}

	return errors.New("machine set is not empty and is using machine class based node management, updating to manual mode is not allowed")
}

func validateSetID(cluster string, set *omni.MachineSet) error {
	id, controlPlanes := set.Metadata().ID(), omni.ControlPlanesResourceID(cluster)

	switch {
	case !strings.HasPrefix(id, cluster+"-"):
		return fmt.Errorf("machine set of cluster %q ID must have %q as prefix", cluster, cluster+"-")
	case isControlPlane(set) && id != controlPlanes:
		return fmt.Errorf("control plane machine set must have ID %q", controlPlanes)
	case !isControlPlane(set) && id == controlPlanes:
		return fmt.Errorf("worker machine set must not have ID %q", controlPlanes)
	}

	return nil
}

func (r rules) destroyMachineSet(ctx context.Context, set *omni.MachineSet) error {
	cluster, err := find[*omni.Cluster](ctx, r.state, omni.NewCluster(clusterOf(set)).Metadata())
	if err != nil || cluster == nil {
		return err
	}

	if isClusterLocked(cluster) && cluster.Metadata().Phase() == resource.PhaseRunning {
		return fmt.Errorf("removing machine set %q from the cluster %q is not allowed: the cluster is locked", set.Metadata().ID(), clusterOf(set))
	}

	return nil
}

func validateMachineClass(class *omni.MachineClass) error {
	spec := class.TypedSpec().Value

	if spec.AutoProvision != nil {
		if spec.MatchLabels != nil {
			return errors.New("can't set both auto provision and match labels at the same time")
		}

		if spec.AutoProvision.ProviderId == "" {
			return errors.New("providerID can not be empty")
		}

		return nil
	}

	selectors, err := labels.ParseSelectors(spec.MatchLabels)
	if err != nil {
		return fmt.Errorf("failed to parse matchLabels: %w", err)
	}

	if len(selectors) == 0 {
		return errors.New("machine class should either have auto provision or match labels set")
	}

	return nil
}

func (r rules) destroyMachineClass(ctx context.Context, class *omni.MachineClass) error {
	sets, err := safe.StateListAll[*omni.MachineSet](ctx, r.state)
	if err != nil {
		return err
	}

	var users []string

	for set := range sets.All() {
		if allocation := omni.GetMachineAllocation(set); allocation != nil && allocation.Name == class.Metadata().ID() {
			users = append(users, set.Metadata().ID())
		}
	}

	if len(users) == 0 {
		return nil
	}

	return fmt.Errorf("can not delete the machine class as it is still in use by machine sets: %s", strings.Join(users, ", "))
}

// clusterOf returns the name in a resource's cluster label.
func clusterOf(res resource.Resource) string {
	name, _ := res.Metadata().Labels().Get(omni.LabelCluster)

	return name
}

func isControlPlane(res resource.Resource) bool {
	_, ok := res.Metadata().Labels().Get(omni.LabelControlPlaneRole)

	return ok
}
