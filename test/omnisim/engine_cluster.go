package omnisim

import (
	"context"
	"errors"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/google/uuid"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// clusterFinalizers block the deletion of a cluster until everything that belongs to it is gone.
func clusterFinalizers() []string {
	return []string{clusterController, clusterStatusController}
}

// clusterView is a cluster and what belongs to it, read at the beginning of a pass.
type clusterView struct {
	cluster  *omni.Cluster
	sets     []*omni.MachineSet
	nodes    []*omni.MachineSetNode
	machines []*omni.ClusterMachine
	config   string // digest of the machines' configuration; see configurationOf
}

func (v *clusterView) name() string { return v.cluster.Metadata().ID() }

func (v *clusterView) tearingDown() bool {
	return v.cluster.Metadata().Phase() == resource.PhaseTearingDown
}

// nodesOf returns the nodes of a set, and those of them that stay.
func (v *clusterView) nodesOf(set string) (all, running []*omni.MachineSetNode) {
	for _, node := range v.nodes {
		if machineSetOf(node) != set {
			continue
		}

		all = append(all, node)

		if node.Metadata().Phase() == resource.PhaseRunning {
			running = append(running, node)
		}
	}

	return all, running
}

func (v *clusterView) machinesOf(set string) []*omni.ClusterMachine {
	var machines []*omni.ClusterMachine

	for _, machine := range v.machines {
		if machineSetOf(machine) == set {
			machines = append(machines, machine)
		}
	}

	return machines
}

func (e *engine) look(ctx context.Context, cluster *omni.Cluster) (*clusterView, error) {
	view, name := &clusterView{cluster: cluster}, cluster.Metadata().ID()

	var err error

	if view.sets, err = listOf(ctx, e.state, omni.NewMachineSet(""), name); err != nil {
		return nil, err
	}

	if view.nodes, err = listOf(ctx, e.state, emptyNode(), name); err != nil {
		return nil, err
	}

	if view.machines, err = listOf(ctx, e.state, omni.NewClusterMachine(""), name); err != nil {
		return nil, err
	}

	view.config, err = e.configurationOf(ctx, name)

	return view, err
}

func emptyNode() *omni.MachineSetNode { return omni.NewMachineSetNode("", omni.NewMachineSet("")) }

// reconcileCluster does what can be done now for one cluster.
func (e *engine) reconcileCluster(ctx context.Context, name string) error {
	cluster, err := find[*omni.Cluster](ctx, e.state, omni.NewCluster(name).Metadata())
	if err != nil {
		return err
	}

	if err = e.destroyReady(ctx, name); err != nil {
		return err
	}

	if cluster == nil {
		return nil
	}

	if err = e.hold(ctx, cluster, clusterFinalizers()...); err != nil {
		return err
	}

	view, err := e.look(ctx, cluster)
	if err != nil {
		return err
	}

	if !view.tearingDown() {
		if err = e.introduce(ctx, view); err != nil {
			return err
		}
	}

	for _, set := range view.sets {
		err = errors.Join(err, e.reconcileSet(ctx, view, set))
	}

	if err != nil {
		return err
	}

	// Sets and machines have changed; compute the statuses from the current state.
	if view, err = e.look(ctx, cluster); err != nil {
		return err
	}

	if err = e.reconcileStatus(ctx, view); err != nil {
		return err
	}

	if view.tearingDown() {
		return e.dismantle(ctx, view)
	}

	if isClusterLocked(cluster) {
		return nil
	}

	return errors.Join(e.reconcileUpgrades(ctx, view), e.reconcileManifests(ctx, view))
}

// introduce creates what a new cluster keeps for life. The UUID takes a step, so requests for kubeconfigs are refused
// for a moment.
func (e *engine) introduce(ctx context.Context, view *clusterView) error {
	name, talos := view.name(), view.cluster.TypedSpec().Value.GetTalosVersion()

	err := put(ctx, e.state, configVersionController, omni.NewClusterConfigVersion(name), func(version *omni.ClusterConfigVersion) {
		if version.TypedSpec().Value.Version == "" {
			version.TypedSpec().Value.Version = "v" + talos
		}
	})
	if err != nil {
		return err
	}

	if !e.elapsed(name, "introduced/"+name, view.cluster.Metadata().Created().String(), 1) {
		return nil
	}

	return put(ctx, e.state, clusterUUIDController, omni.NewClusterUUID(name), func(id *omni.ClusterUUID) {
		if id.TypedSpec().Value.Uuid == "" {
			id.TypedSpec().Value.Uuid = uuid.NewString()
			id.Metadata().Labels().Set(omni.LabelClusterUUID, id.TypedSpec().Value.Uuid)
		}
	})
}

// reconcileStatus writes the statuses of a cluster and of its load balancer.
func (e *engine) reconcileStatus(ctx context.Context, view *clusterView) error {
	name := view.name()

	stopped, healthy := e.balance(ctx, view)

	err := put(ctx, e.state, loadBalancerController, omni.NewLoadBalancerStatus(name), func(lb *omni.LoadBalancerStatus) {
		lb.Metadata().Labels().Set(omni.LabelCluster, name)
		lb.TypedSpec().Value.Stopped, lb.TypedSpec().Value.Healthy = stopped, healthy
	})
	if err != nil {
		return err
	}

	summary, err := e.summarize(ctx, view)
	if err != nil {
		return err
	}

	summary.KubernetesAPIReady = healthy

	return put(ctx, e.state, clusterStatusController, omni.NewClusterStatus(name), func(clusterStatus *omni.ClusterStatus) {
		clusterStatus.TypedSpec().Value = summary

		if isClusterLocked(view.cluster) {
			clusterStatus.Metadata().Annotations().Set(omni.ClusterLocked, "")
		} else {
			clusterStatus.Metadata().Annotations().Delete(omni.ClusterLocked)
		}
	})
}

func (e *engine) summarize(ctx context.Context, view *clusterView) (*specs.ClusterStatusSpec, error) {
	summary := &specs.ClusterStatusSpec{
		Machines:          &specs.Machines{},
		TalosVersion:      view.cluster.TypedSpec().Value.GetTalosVersion(),
		KubernetesVersion: view.cluster.TypedSpec().Value.GetKubernetesVersion(),
	}

	phases, ready := map[specs.MachineSetPhase]int{}, true

	for _, set := range view.sets {
		setStatus, err := find[*omni.MachineSetStatus](ctx, e.state, omni.NewMachineSetStatus(set.Metadata().ID()).Metadata())
		if err != nil {
			return nil, err
		}

		if setStatus == nil {
			continue
		}

		spec := setStatus.TypedSpec().Value
		leaving := spec.Phase == specs.MachineSetPhase_Destroying || spec.Phase == specs.MachineSetPhase_ScalingDown

		if leaving && spec.GetMachines().GetTotal() == 0 {
			continue
		}

		summary.Machines.Total += spec.GetMachines().GetTotal()
		summary.Machines.Healthy += spec.GetMachines().GetHealthy()
		summary.Machines.Connected += spec.GetMachines().GetConnected()
		summary.Machines.Requested += spec.GetMachines().GetRequested()

		if isControlPlane(set) {
			summary.Available = spec.GetMachines().GetTotal() > 0
			summary.HasConnectedControlPlanes = spec.GetMachines().GetConnected() > 0
			summary.ControlplaneReady = spec.Phase == specs.MachineSetPhase_Running && spec.Ready
		}

		phases[spec.Phase]++
		ready = ready && spec.Ready
	}

	summary.Phase = clusterPhase(view.tearingDown(), phases)
	summary.Ready = ready && summary.Phase == specs.ClusterStatusSpec_RUNNING

	return summary, nil
}

// clusterPhase returns the phase of a cluster whose machine sets have these phases.
func clusterPhase(tearingDown bool, phases map[specs.MachineSetPhase]int) specs.ClusterStatusSpec_Phase {
	switch {
	case tearingDown, len(phases) == 1 && phases[specs.MachineSetPhase_Destroying] > 0:
		return specs.ClusterStatusSpec_DESTROYING
	case phases[specs.MachineSetPhase_ScalingUp] > 0:
		return specs.ClusterStatusSpec_SCALING_UP
	case phases[specs.MachineSetPhase_ScalingDown]+phases[specs.MachineSetPhase_Destroying] > 0:
		return specs.ClusterStatusSpec_SCALING_DOWN
	case phases[specs.MachineSetPhase_Running]+phases[specs.MachineSetPhase_Reconfiguring]+phases[specs.MachineSetPhase_Upgrading] > 0:
		return specs.ClusterStatusSpec_RUNNING
	default:
		return specs.ClusterStatusSpec_UNKNOWN
	}
}
