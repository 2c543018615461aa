package omnisim

import (
	"context"

	"github.com/cosi-project/runtime/pkg/resource"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// plainTypes belong to a cluster; nothing blocks their deletion, and they block none.
func plainTypes() []resource.Type {
	return []resource.Type{
		omni.ConfigPatchType, omni.ExtensionsConfigurationType, omni.KubernetesManifestGroupType, omni.KubernetesHealthCheckType,
	}
}

// destroyReady destroys resources that clients tore down and that have no finalizers, so that a client need not stay to
// finish a deletion.
func (e *engine) destroyReady(ctx context.Context, cluster string) error {
	for _, resourceType := range plainTypes() {
		list, err := e.listAny(ctx, resourceType, resource.LabelEqual(omni.LabelCluster, cluster))
		if err != nil {
			return err
		}

		for _, res := range list {
			if res.Metadata().Phase() == resource.PhaseTearingDown {
				if err = e.release(ctx, res); err != nil {
					return err
				}
			}
		}
	}

	return nil
}

// dismantle removes the parts of a cluster that is being torn down: workers, then control planes, then the rest, and at
// last the cluster itself.
func (e *engine) dismantle(ctx context.Context, view *clusterView) error {
	workers := 0

	for _, set := range view.sets {
		if !isControlPlane(set) {
			workers++

			if err := e.teardown(ctx, set); err != nil {
				return err
			}
		}
	}

	if workers > 0 {
		return nil
	}

	for _, set := range view.sets {
		if err := e.teardown(ctx, set); err != nil {
			return err
		}
	}

	if len(view.sets) > 0 || len(view.machines) > 0 {
		return nil
	}

	// The last step takes time, so that clients can see a cluster that is being destroyed.
	name := view.name()
	if !e.elapsed(name, "dismantled/"+name, "", 1) {
		return nil
	}

	for _, resourceType := range plainTypes() {
		if err := e.dropLabelled(ctx, resourceType, resource.LabelEqual(omni.LabelCluster, name)); err != nil {
			return err
		}
	}

	for _, ptr := range []resource.Pointer{
		omni.NewLoadBalancerStatus(name).Metadata(),
		omni.NewClusterKubernetesManifestsStatus(name).Metadata(),
		omni.NewKubernetesUpgradeStatus(name).Metadata(),
		omni.NewTalosUpgradeStatus(name).Metadata(),
		omni.NewClusterBootstrapStatus(name).Metadata(),
		omni.NewClusterConfigVersion(name).Metadata(),
		omni.NewClusterUUID(name).Metadata(),
		omni.NewClusterStatus(name).Metadata(),
	} {
		if err := e.drop(ctx, ptr); err != nil {
			return err
		}
	}

	e.forget("introduced/"+name, "dismantled/"+name, "kubernetes/"+name, "manifests/"+name)

	return e.release(ctx, view.cluster, clusterFinalizers()...)
}

// dismantleSet removes a machine set: its machines, then its patches, then the set itself. A cluster that loses its
// control planes is bootstrapped again with the next ones.
func (e *engine) dismantleSet(ctx context.Context, view *clusterView, set *omni.MachineSet) error {
	id := set.Metadata().ID()

	all, _ := view.nodesOf(id)
	for _, node := range all {
		if err := e.teardown(ctx, node); err != nil {
			return err
		}
	}

	if len(all) > 0 || len(view.machinesOf(id)) > 0 {
		return nil
	}

	if !e.elapsed(view.name(), "dismantled-set/"+id, "", 1) {
		return nil
	}

	for _, resourceType := range []resource.Type{omni.ConfigPatchType, omni.ExtensionsConfigurationType} {
		if err := e.dropLabelled(ctx, resourceType, resource.LabelEqual(omni.LabelMachineSet, id)); err != nil {
			return err
		}
	}

	for _, ptr := range []resource.Pointer{omni.NewControlPlaneStatus(id).Metadata(), omni.NewMachineSetStatus(id).Metadata()} {
		if err := e.drop(ctx, ptr); err != nil {
			return err
		}
	}

	e.forget("dismantled-set/" + id)

	if isControlPlane(set) {
		if err := e.setBootstrapped(ctx, view.name(), false); err != nil {
			return err
		}
	}

	return e.release(ctx, set, setFinalizers()...)
}

func (e *engine) dropLabelled(ctx context.Context, resourceType resource.Type, query ...resource.LabelQueryOption) error {
	list, err := e.listAny(ctx, resourceType, query...)
	if err != nil {
		return err
	}

	for _, res := range list {
		if err = e.drop(ctx, res.Metadata()); err != nil {
			return err
		}
	}

	return nil
}
