package omnisim

import (
	"context"

	"github.com/cosi-project/runtime/pkg/resource"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// etcdAllows reports whether a machine that no node lists any more may leave its set now. From a control plane that stays, Omni
// takes one machine at a time, only while the load balancer is healthy, and only if etcd has its quorum before and afterwards. So the
// only member never leaves. It refuses no removal of a node: the machine stays in the cluster, and leaves once another one has joined.
// A machine whose etcd never joined is no member. Observed in the source of v1.9: its machine set controller and check of etcd.
func (e *engine) etcdAllows(ctx context.Context, view *clusterView, set *omni.MachineSet, id string) (bool, error) {
	if !isControlPlane(set) || set.Metadata().Phase() != resource.PhaseRunning || view.tearingDown() {
		return true, nil
	}

	balancer, err := find[*omni.LoadBalancerStatus](ctx, e.state, omni.NewLoadBalancerStatus(view.name()).Metadata())
	if err != nil || balancer == nil || !balancer.TypedSpec().Value.GetHealthy() {
		return false, err
	}

	members, healthy, isMember, isHealthy := 0, 0, false, false

	for _, machine := range view.machinesOf(set.Metadata().ID()) {
		other := machine.Metadata().ID()

		stage, err := e.stageOf(ctx, other)
		if err != nil {
			return false, err
		}

		if stage == specs.ClusterMachineStatusSpec_DESTROYING {
			return other == id, nil
		}

		if _, joined := e.members[other]; !joined {
			continue
		}

		serves := e.servesEtcd(other, stage)
		members++

		if serves {
			healthy++
		}

		if other == id {
			isMember, isHealthy = true, serves
		}
	}

	return !isMember || keepsQuorum(members, healthy, isHealthy), nil
}

// keepsQuorum reports whether a member may leave etcd: most of the members are healthy, and most of those that are left are.
func keepsQuorum(members, healthy int, leaverIsHealthy bool) bool {
	if healthy < members/2+1 {
		return false
	}

	if leaverIsHealthy {
		healthy--
	}

	return healthy >= (members-1)/2+1
}

// servesEtcd reports whether etcd answers on a machine in a stage.
func (e *engine) servesEtcd(id string, stage specs.ClusterMachineStatusSpec_Stage) bool {
	if _, dead := e.dead[id]; dead {
		return false
	}

	switch stage {
	case specs.ClusterMachineStatusSpec_RUNNING, specs.ClusterMachineStatusSpec_CONFIGURING, specs.ClusterMachineStatusSpec_BEFORE_DESTROY:
		return true
	default:
		return false
	}
}

func (e *engine) stageOf(ctx context.Context, id string) (specs.ClusterMachineStatusSpec_Stage, error) {
	status, err := find[*omni.ClusterMachineStatus](ctx, e.state, omni.NewClusterMachineStatus(id).Metadata())
	if err != nil || status == nil {
		return specs.ClusterMachineStatusSpec_UNKNOWN, err
	}

	return status.TypedSpec().Value.GetStage(), nil
}
