package omnisim

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// place returns the machine set and the cluster of a node; each may be nil.
func (r rules) place(ctx context.Context, node *omni.MachineSetNode) (*omni.MachineSet, *omni.Cluster, error) {
	set, err := find[*omni.MachineSet](ctx, r.state, omni.NewMachineSet(machineSetOf(node)).Metadata())
	if err != nil {
		return nil, nil, err
	}

	cluster, err := find[*omni.Cluster](ctx, r.state, omni.NewCluster(clusterOf(node)).Metadata())

	return set, cluster, err
}

func (r rules) createMachineSetNode(ctx context.Context, node *omni.MachineSetNode) error {
	set, cluster, err := r.place(ctx, node)
	if err != nil {
		return err
	}

	if err = placeReason("adding machine set node to", node, set, cluster); err != nil {
		return err
	}

	if omni.GetMachineAllocation(set) != nil {
		machine, findErr := find[*omni.ClusterMachine](ctx, r.state, omni.NewClusterMachine(node.Metadata().ID()).Metadata())
		if findErr != nil {
			return findErr
		}

		// A caller may add a node that a class chose only to undo its removal.
		if machine == nil || machine.Metadata().Phase() != resource.PhaseRunning || !isChosenByClass(node) {
			return fmt.Errorf("adding machine set node to the machine set %q is not allowed: the machine set is using automated machine allocation", set.Metadata().ID())
		}
	}

	if err = r.validateMachineVersion(ctx, node.Metadata().ID(), cluster); err != nil {
		return err
	}

	return validateNodeLock(set, node)
}

func (r rules) updateMachineSetNode(ctx context.Context, old, updated *omni.MachineSetNode) error {
	if updated.Metadata().Phase() == resource.PhaseTearingDown {
		return nil
	}

	set, cluster, err := r.place(ctx, old)
	if err != nil {
		return err
	}

	if err = placeReason("updating machine set node on", old, set, cluster); err != nil {
		return err
	}

	return validateNodeLock(set, updated)
}

// placeReason returns why a node cannot be in its set: the set or the cluster is missing, being torn down or locked.
func placeReason(doing string, node *omni.MachineSetNode, set *omni.MachineSet, cluster *omni.Cluster) error {
	refuse := func(setID, why string, args ...any) error {
		return fmt.Errorf("%s the machine set %q is not allowed: %s", doing, setID, fmt.Sprintf(why, args...))
	}

	switch {
	case set == nil:
		return refuse(machineSetOf(node), "the machine set does not exist")
	case set.Metadata().Phase() == resource.PhaseTearingDown:
		return refuse(set.Metadata().ID(), "the machine set is tearing down")
	case cluster == nil:
		return refuse(set.Metadata().ID(), "the cluster %q does not exist", clusterOf(node))
	case cluster.Metadata().Phase() == resource.PhaseTearingDown:
		return refuse(set.Metadata().ID(), "the cluster %q is tearing down", cluster.Metadata().ID())
	case isClusterLocked(cluster):
		return refuse(set.Metadata().ID(), "the cluster %q is locked", cluster.Metadata().ID())
	}

	return nil
}

// validateMachineVersion refuses to downgrade a machine's Talos. It accepts a machine that the server does not have:
// the cluster waits for it.
func (r rules) validateMachineVersion(ctx context.Context, machine string, cluster *omni.Cluster) error {
	machineStatus, err := find[*omni.MachineStatus](ctx, r.state, omni.NewMachineStatus(machine).Metadata())
	if err != nil || machineStatus == nil {
		return err
	}

	has := strings.TrimPrefix(machineStatus.TypedSpec().Value.TalosVersion, "v")
	wants := cluster.TypedSpec().Value.TalosVersion

	if has == "" || machineStatus.TypedSpec().Value.Schematic.GetInAgentMode() {
		return nil
	}

	if minor(has) > minor(wants) {
		return fmt.Errorf("cannot add machine set node to the cluster %s as it will trigger Talos downgrade on the node (%s -> %s)",
			cluster.Metadata().ID(), has, wants)
	}

	if omni.GetMachineStatusSystemDisk(machineStatus) == "" && minor(has) != minor(wants) {
		return errors.New("machines which are running Talos without installation can be added only to Talos clusters with the same major and minor versions")
	}

	return nil
}

func (r rules) destroyMachineSetNode(ctx context.Context, node *omni.MachineSetNode) error {
	set, cluster, err := r.place(ctx, node)
	if err != nil {
		return err
	}

	switch {
	case set == nil || set.Metadata().Phase() == resource.PhaseTearingDown:
		return nil
	case cluster == nil || cluster.Metadata().Phase() == resource.PhaseTearingDown:
		return nil
	case isMachineLocked(node):
		return fmt.Errorf("removing machine set node from the machine set %q is not allowed: machine set node is locked", machineSetOf(node))
	case isClusterLocked(cluster):
		return fmt.Errorf("removing machine set node from the machine set %q is not allowed: the cluster %q is locked", machineSetOf(node), clusterOf(node))
	}

	return nil
}

func validateNodeLock(set *omni.MachineSet, node *omni.MachineSetNode) error {
	if isMachineLocked(node) && isControlPlane(set) {
		return errors.New("locking controlplanes is not allowed")
	}

	return nil
}

func isMachineLocked(node resource.Resource) bool {
	_, locked := node.Metadata().Annotations().Get(omni.MachineLocked)

	return locked
}

func isChosenByClass(node resource.Resource) bool {
	_, ok := node.Metadata().Labels().Get(omni.LabelManagedByMachineSetNodeController)

	return ok
}

func machineSetOf(res resource.Resource) string {
	name, _ := res.Metadata().Labels().Get(omni.LabelMachineSet)

	return name
}
