package plan

import (
	"context"
	"fmt"
	"slices"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/omni/client/pkg/omni/resources"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/omni/resources/siderolink"
	"github.com/siderolabs/omni/client/pkg/template"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// DeleteOptions are the options of Delete.
type DeleteOptions struct {
	// DestroyMachines also removes the cluster's disconnected machines from Omni. Without it, a cluster with dead machines
	// waits for them for ever; with it, until Omni has marked them disconnected (minutes). It never marks those that were shut down.
	DestroyMachines bool
}

// Delete plans the next step of a whole cluster's deletion. It is re-entrant: plan and apply (with consent for
// EveryChange) again each time the mirror reports a change, until the plan is Empty and Live.Exists is false.
//
// The caller decides whether the cluster may be deleted at all (owner's mark, policy). A locked cluster makes Apply
// fail with ErrClusterLocked.
func Delete(ctx context.Context, st state.State, cluster string, options DeleteOptions) (*Plan, error) {
	seen, err := omni.ReadCluster(ctx, st, cluster)
	if err != nil {
		return nil, err
	}

	result, err := template.WithCluster(cluster).Delete(ctx, st)
	if err != nil {
		return nil, fmt.Errorf("plan the deletion of cluster %q: %w", cluster, err)
	}

	if options.DestroyMachines {
		phases, err := machinePhases(ctx, st, cluster)
		if err != nil {
			return nil, err
		}

		result.Destroy = append(phases, result.Destroy...)
	}

	nodes, err := omni.ListOf(ctx, st, omnires.MachineSetNodeType, cluster)
	if err != nil {
		return nil, err
	}

	plan := planBuilder{cluster: cluster, nodes: nodesBySet(nodes)}.build(ctx, result, seen)
	plan.Hash, plan.deletion = HashOf(plan.Changes), true

	if plan.uuid, err = omni.ReadUUID(ctx, st, cluster); err != nil {
		return nil, err
	}

	return plan, nil
}

// machinePhases lists what has to be destroyed before the cluster so that disconnected machines do not block it, in the
// order of the library's own operation: the machines' links, the machines' patches. The library's operation begins with
// all extensions of the cluster. This one does not: links can take long, the cluster may be kept meanwhile, and its
// other machines would have lost their extensions. Omni removes the extensions with the cluster.
func machinePhases(ctx context.Context, st state.State, cluster string) ([][]resource.Resource, error) {
	machines, err := omni.ListOf(ctx, st, omnires.MachineStatusType, cluster)
	if err != nil {
		return nil, err
	}

	var links, patches []resource.Resource

	for _, machine := range machines {
		if _, disconnected := machine.Metadata().Labels().Get(omnires.MachineStatusLabelDisconnected); !disconnected {
			continue
		}

		own, err := st.List(ctx,
			resource.NewMetadata(resources.DefaultNamespace, omnires.ConfigPatchType, "", resource.VersionUndefined),
			state.WithLabelQuery(resource.LabelEqual(omnires.LabelMachine, machine.Metadata().ID())),
		)
		if err != nil {
			return nil, fmt.Errorf("list patches of machine %q: %w", machine.Metadata().ID(), err)
		}

		// Only Omni's controllers may destroy the resources that they own.
		own.Items = slices.DeleteFunc(own.Items, func(item resource.Resource) bool { return item.Metadata().Owner() != "" })

		links = append(links, siderolink.NewLink(machine.Metadata().ID(), nil))
		patches = append(patches, own.Items...)
	}

	return [][]resource.Resource{links, patches}, nil
}
