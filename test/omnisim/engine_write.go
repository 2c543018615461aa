package omnisim

import (
	"context"
	"fmt"
	"slices"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/pkg/omni/resources"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// Omni's controllers whose names clients see as owners and finalizers.
const (
	clusterController          = "ClusterController"
	clusterStatusController    = "ClusterStatusController"
	clusterUUIDController      = "ClusterUUIDController"
	configVersionController    = "ClusterConfigVersionController"
	bootstrapController        = "ClusterBootstrapStatusController"
	loadBalancerController     = "LoadBalancerController"
	kubernetesUpgradeOwner     = "KubernetesUpgradeStatusController"
	talosUpgradeOwner          = "TalosUpgradeStatusController"
	manifestsController        = "ClusterKubernetesManifestsStatusController"
	requestsController         = "ClusterMachineRequestStatusController"
	machineSetController       = "MachineSetController"
	machineSetStatusController = "MachineSetStatusController"
	machineSetNodeController   = "MachineSetNodeController"
	controlPlaneController     = "ControlPlaneStatusController"
	clusterMachineController   = "ClusterMachineStatusController"
	identityController         = "ClusterMachineIdentityController"
	machineController          = "MachineController"
	machineStatusController    = "MachineStatusController"
	labelsController           = "LabelsExtractorController[MachineStatuses.omni.sidero.dev]"
)

// put creates or changes a resource of the engine's own. It does not write a change without effect, so that watches
// stay silent.
func put[T resource.Resource](ctx context.Context, st state.State, owner string, empty T, change func(T)) error {
	_, err := st.UpdateWithConflicts(ctx, empty.Metadata(), func(existing resource.Resource) error {
		change(existing.(T))

		return nil
	}, state.WithUpdateOwner(owner), state.WithExpectedPhaseAny())
	if !state.IsNotFoundError(err) {
		return err
	}

	change(empty)

	return st.Create(ctx, empty, state.WithCreateOwner(owner))
}

// drop removes a resource at once, whatever its owner and finalizers.
func (e *engine) drop(ctx context.Context, ptr resource.Pointer) error {
	existing, err := e.state.Get(ctx, ptr)
	if state.IsNotFoundError(err) {
		return nil
	}

	if err != nil {
		return err
	}

	owner := existing.Metadata().Owner()

	if !existing.Metadata().Finalizers().Empty() {
		if err = e.state.RemoveFinalizer(ctx, ptr, *existing.Metadata().Finalizers()...); err != nil {
			return ignoreNotFound(err)
		}
	}

	if _, err = e.state.Teardown(ctx, ptr, state.WithTeardownOwner(owner)); err != nil {
		return ignoreNotFound(err)
	}

	return ignoreNotFound(e.state.Destroy(ctx, ptr, state.WithDestroyOwner(owner)))
}

// teardown marks a resource for destruction if it is not marked yet.
func (e *engine) teardown(ctx context.Context, res resource.Resource) error {
	if res.Metadata().Phase() == resource.PhaseTearingDown {
		return nil
	}

	_, err := e.state.Teardown(ctx, res.Metadata(), state.WithTeardownOwner(res.Metadata().Owner()))

	return ignoreNotFound(err)
}

// hold adds finalizers to a resource that is not being torn down.
func (e *engine) hold(ctx context.Context, res resource.Resource, finalizers ...string) error {
	missing := slices.DeleteFunc(slices.Clone(finalizers), res.Metadata().Finalizers().Has)
	if len(missing) == 0 || res.Metadata().Phase() == resource.PhaseTearingDown {
		return nil
	}

	return ignoreNotFound(e.state.AddFinalizer(ctx, res.Metadata(), missing...))
}

// release removes the engine's finalizers from a resource, and destroys it if it is torn down and has no finalizers
// left, as Omni does.
func (e *engine) release(ctx context.Context, res resource.Resource, finalizers ...string) error {
	held := slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return !res.Metadata().Finalizers().Has(f) })

	if len(held) > 0 {
		if err := e.state.RemoveFinalizer(ctx, res.Metadata(), held...); err != nil {
			return ignoreNotFound(err)
		}
	}

	current, err := e.state.Get(ctx, res.Metadata())
	if err != nil {
		return ignoreNotFound(err)
	}

	if current.Metadata().Phase() != resource.PhaseTearingDown || !current.Metadata().Finalizers().Empty() {
		return nil
	}

	return ignoreNotFound(e.state.Destroy(ctx, current.Metadata(), state.WithDestroyOwner(current.Metadata().Owner())))
}

func ignoreNotFound(err error) error {
	if state.IsNotFoundError(err) {
		return nil
	}

	return err
}

// listOf returns the resources of a type that have the cluster's label, by ID.
func listOf[T interface {
	comparable
	resource.Resource
}](ctx context.Context, st state.State, empty T, cluster string) ([]T, error) {
	list, err := safe.StateList[T](ctx, st, empty.Metadata(), state.WithLabelQuery(resource.LabelEqual(omni.LabelCluster, cluster)))
	if err != nil {
		return nil, err
	}

	return slices.Collect(list.All()), nil
}

// listAny is listOf for types that need no Go type.
func (e *engine) listAny(ctx context.Context, resourceType resource.Type, query ...resource.LabelQueryOption) ([]resource.Resource, error) {
	kind := resource.NewMetadata(resources.DefaultNamespace, resourceType, "", resource.VersionUndefined)

	list, err := e.state.List(ctx, kind, state.WithLabelQuery(query...))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", resourceType, err)
	}

	return list.Items, nil
}
