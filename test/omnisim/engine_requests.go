package omnisim

import (
	"context"
	"fmt"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/uuid"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/omni/resources/siderolink"
)

// The stages of a request for a machine.
const (
	requestPending      = specs.ClusterMachineRequestStatusSpec_PENDING
	requestProvisioning = specs.ClusterMachineRequestStatusSpec_PROVISIONING
	requestProvisioned  = specs.ClusterMachineRequestStatusSpec_PROVISIONED
	requestFailed       = specs.ClusterMachineRequestStatusSpec_FAILED
)

// AddProvisionedClass creates a machine class whose machines an infrastructure provider makes: one for each request of a set,
// and it connects some steps later.
func (s *Server) AddProvisionedClass(name, provider string) error {
	class := omni.NewMachineClass(name)
	class.TypedSpec().Value.AutoProvision = &specs.MachineClassSpec_Provision{ProviderId: provider}

	if err := s.State().Create(context.Background(), class); err != nil {
		return fmt.Errorf("create machine class: %w", err)
	}

	return nil
}

// FailProvisioning makes the provider fail to make machines for a set of a cluster, with an error, until the text is empty. It
// goes on trying.
func (s *Server) FailProvisioning(cluster, set, text string) {
	s.engine.call(func(context.Context) {
		s.engine.failing[cluster+"-"+set] = text
		s.engine.waiting[cluster] = struct{}{}
	})
}

// provision keeps as many requests for a set as it is to have machines, or still has, and has the provider go on with them.
func (e *engine) provision(ctx context.Context, view *clusterView, set *omni.MachineSet) error {
	id, allocation := set.Metadata().ID(), omni.GetMachineAllocation(set)
	if allocation == nil {
		return nil
	}

	class, err := find[*omni.MachineClass](ctx, e.state, omni.NewMachineClass(allocation.Name).Metadata())
	if err != nil || class == nil || class.TypedSpec().Value.AutoProvision == nil {
		return err
	}

	requests, err := safe.StateListAll[*omni.ClusterMachineRequestStatus](ctx, e.state, state.WithLabelQuery(resource.LabelEqual(omni.LabelMachineSet, id)))
	if err != nil {
		return err
	}

	wanted := len(view.machinesOf(id))
	if set.Metadata().Phase() == resource.PhaseRunning && !view.tearingDown() {
		wanted = max(wanted, int(allocation.MachineCount))
	}

	surplus := requests.Len() - wanted

	for request := range requests.All() {
		machine, findErr := find[*omni.ClusterMachineStatus](ctx, e.state, omni.NewClusterMachineStatus(request.TypedSpec().Value.MachineUuid).Metadata())

		switch {
		case findErr != nil:
			return findErr
		case machine == nil && surplus > 0:
			surplus--

			err = e.withdraw(ctx, request)
		default:
			err = e.advanceRequest(ctx, view, request, machine != nil)
		}

		if err != nil {
			return err
		}
	}

	for range -surplus {
		if err = e.requestMachine(ctx, view, set, class.TypedSpec().Value.AutoProvision.ProviderId); err != nil {
			return err
		}
	}

	return nil
}

func (e *engine) requestMachine(ctx context.Context, view *clusterView, set *omni.MachineSet, provider string) error {
	e.waiting[view.name()] = struct{}{}

	request := omni.NewClusterMachineRequestStatus(set.Metadata().ID() + "-" + uuid.NewString()[:6])
	copyPlace(request, set)

	request.TypedSpec().Value = &specs.ClusterMachineRequestStatusSpec{
		Stage: requestPending, ProviderId: provider, Status: "Waiting for the infra provider to start provision",
	}

	return e.state.Create(ctx, request, state.WithCreateOwner(requestsController))
}

// advanceRequest has the provider take the next step with a request. A machine that is made connects a step later.
func (e *engine) advanceRequest(ctx context.Context, view *clusterView, request *omni.ClusterMachineRequestStatus, inUse bool) error {
	id, spec := request.Metadata().ID(), request.TypedSpec().Value
	failure := e.failing[machineSetOf(request)]

	if spec.Stage == requestProvisioned {
		if !inUse && e.elapsed(view.name(), "request/"+id, spec.MachineUuid, 1) {
			if err := e.connectMade(ctx, view, request); err != nil {
				return err
			}
		}
	} else if !e.elapsed(view.name(), "request/"+id, spec.Stage.String()+failure, 1) {
		return nil
	}

	return put(ctx, e.state, requestsController, omni.NewClusterMachineRequestStatus(id), func(request *omni.ClusterMachineRequestStatus) {
		setLabel(request, omni.LabelMachineRequestInUse, inUse)

		switch spec := request.TypedSpec().Value; {
		case spec.Stage == requestProvisioned:
		case failure != "":
			spec.Stage, spec.Status, spec.Error = requestFailed, "Provision Failed: "+failure, failure
		case spec.Stage == requestProvisioning:
			spec.Stage, spec.Status, spec.MachineUuid = requestProvisioned, "Waiting for the machine to join Omni", uuid.NewString()
			e.waiting[view.name()] = struct{}{}
		default:
			spec.Stage, spec.Status, spec.Error = requestProvisioning, `Running Step: "createMachine" (1/1)`, ""
			e.waiting[view.name()] = struct{}{}
		}
	})
}

// connectMade connects a machine that was made for a set, unless it has connected.
func (e *engine) connectMade(ctx context.Context, view *clusterView, request *omni.ClusterMachineRequestStatus) error {
	id := request.TypedSpec().Value.MachineUuid

	known, err := find[*omni.Machine](ctx, e.state, omni.NewMachine(id).Metadata())
	if err != nil || known != nil {
		return err
	}

	return e.connect(ctx, Machine{
		ID: id, TalosVersion: view.cluster.TypedSpec().Value.TalosVersion,
		Labels: map[string]string{omni.LabelMachineRequest: request.Metadata().ID(), omni.LabelMachineRequestSet: machineSetOf(request)},
	})
}

// withdraw removes a request, and the machine that was made for it.
func (e *engine) withdraw(ctx context.Context, request *omni.ClusterMachineRequestStatus) error {
	link, err := find[*siderolink.Link](ctx, e.state, siderolink.NewLink(request.TypedSpec().Value.MachineUuid, nil).Metadata())
	if err != nil {
		return err
	}

	if link != nil {
		if err = e.teardown(ctx, link); err != nil {
			return err
		}
	}

	e.forget("request/" + request.Metadata().ID())

	return e.drop(ctx, request.Metadata())
}
