package omnisim

import (
	"context"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// The load balancer of a new cluster, as observed with real machines: it starts when a control plane machine has booted
// from its disk, and reports healthy at once. Its first check is 8 seconds later and finds no Kubernetes API; another
// 50 seconds later a check finds it. The machines report that they run and are ready before the first check, so the
// whole cluster seems to be healthy.
const (
	firstLookSteps   = 3
	firstAnswerSteps = 9
)

// balance returns the status of Omni's load balancer: whether it is stopped, because no control plane machine can be
// reached, and whether it reports the Kubernetes API as healthy.
func (e *engine) balance(ctx context.Context, view *clusterView) (stopped, healthy bool) {
	booted, connected, _ := e.controlPlane(ctx, view)
	if !connected || !booted && !e.started(view) {
		return true, false
	}

	looked := e.elapsed(view.name(), balancerKey(view), lifeOf(view), firstLookSteps)

	return false, e.answers(ctx, view) || !looked
}

// answers reports whether the Kubernetes API of a cluster answers. It first does so some steps after the load balancer
// has started.
func (e *engine) answers(ctx context.Context, view *clusterView) bool {
	_, _, ready := e.controlPlane(ctx, view)

	return ready && e.started(view) && e.elapsed(view.name(), balancerKey(view), lifeOf(view), firstAnswerSteps)
}

// started reports whether the load balancer of this very cluster ever started.
func (e *engine) started(view *clusterView) bool {
	return e.since[balancerKey(view)].value == lifeOf(view)
}

func balancerKey(view *clusterView) string { return "load balancer/" + view.name() }

// lifeOf separates a cluster from earlier ones of the same name.
func lifeOf(view *clusterView) string { return view.cluster.Metadata().Created().String() }

// controlPlane returns the best state of a cluster's control plane machines. A dead machine does not answer, and Omni
// detects that only after a while.
func (e *engine) controlPlane(ctx context.Context, view *clusterView) (booted, connected, ready bool) {
	for _, machine := range view.machines {
		if !isControlPlane(machine) {
			continue
		}

		current, err := find[*omni.ClusterMachineStatus](ctx, e.state, omni.NewClusterMachineStatus(machine.Metadata().ID()).Metadata())
		if err != nil || current == nil {
			continue
		}

		_, dead := e.dead[machine.Metadata().ID()]
		_, reached := current.Metadata().Labels().Get(omni.MachineStatusLabelConnected)
		_, joined := e.members[machine.Metadata().ID()]
		stage := current.TypedSpec().Value.Stage
		running := !dead && (stage == specs.ClusterMachineStatusSpec_RUNNING || joined && stage == specs.ClusterMachineStatusSpec_BEFORE_DESTROY)

		connected = connected || reached
		booted = booted || running
		ready = ready || running && current.TypedSpec().Value.Ready
	}

	return booted, connected, ready
}
