package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
)

// exactParts are the parts that the library's export does not reproduce exactly.
type exactParts struct {
	cluster    string
	backups    bool
	patches    map[string]string // contents by ID
	jobs       map[string]string // jobs of healthchecks by ID
	manifests  []exactManifest   // in the order of the template
	sets       map[string]*omnires.MachineSet
	kernelArgs map[string][]string // by machine; only those that a template manages
	unmanaged  []string            // machines with other kernel arguments
}

type exactManifest struct{ name, content string }

// readExact reads the resources of a cluster that have no owner in Omni: those that users or templates made.
func readExact(ctx context.Context, st state.State, cluster string) (*exactParts, error) {
	exact := &exactParts{
		cluster: cluster, patches: map[string]string{}, jobs: map[string]string{}, sets: map[string]*omnires.MachineSet{},
		kernelArgs: map[string][]string{},
	}

	found, err := omni.ReadCluster(ctx, st, cluster)
	if err != nil {
		return nil, err
	}

	exact.backups = found != nil && found.TypedSpec().Value.GetBackupConfiguration().GetEnabled()

	for _, resourceType := range []resource.Type{
		omnires.ConfigPatchType, omnires.KubernetesManifestGroupType, omnires.KubernetesHealthCheckType,
		omnires.MachineSetType, omnires.MachineSetNodeType,
	} {
		items, err := omni.ListOf(ctx, st, resourceType, cluster)
		if err != nil {
			return nil, err
		}

		slices.SortFunc(items, func(a, b resource.Resource) int { return strings.Compare(a.Metadata().ID(), b.Metadata().ID()) })

		for _, item := range items {
			if item.Metadata().Owner() != "" {
				continue
			}

			if err := exact.read(ctx, st, item); err != nil {
				return nil, err
			}
		}
	}

	return exact, nil
}

func (e *exactParts) read(ctx context.Context, st state.State, item resource.Resource) error {
	id := item.Metadata().ID()

	switch item := item.(type) {
	case *omnires.ConfigPatch:
		content, err := bounds.Inflate(item.TypedSpec().Value)
		if err != nil {
			return fmt.Errorf("read ConfigPatch %q: %w", id, err)
		}

		e.patches[id] = content
	case *omnires.KubernetesManifestGroup:
		content, err := bounds.Inflate(item.TypedSpec().Value)
		if err != nil {
			return fmt.Errorf("read KubernetesManifestGroup %q: %w", id, err)
		}

		name, _ := item.Metadata().Annotations().Get(omnires.KubernetesManifestName)
		e.manifests = append(e.manifests, exactManifest{name: name, content: content})
	case *omnires.KubernetesHealthCheck:
		e.jobs[id] = item.TypedSpec().Value.GetJob()
	case *omnires.MachineSet:
		e.sets[strings.TrimPrefix(id, e.cluster+"-")] = item
	case *omnires.MachineSetNode:
		return e.readKernelArgs(ctx, st, id)
	}

	return nil
}

// readKernelArgs separates managed from unmanaged arguments: a template that contains unmanaged ones would take them
// over, and one without them leaves them as they are.
func (e *exactParts) readKernelArgs(ctx context.Context, st state.State, machine string) error {
	args, err := safe.StateGetByID[*omnires.KernelArgs](ctx, st, machine)
	if state.IsNotFoundError(err) {
		return nil
	}

	if err != nil {
		return fmt.Errorf("read KernelArgs %q: %w", machine, err)
	}

	if _, managed := args.Metadata().Annotations().Get(omnires.ResourceManagedByClusterTemplates); managed {
		e.kernelArgs[machine] = slices.Concat([]string{}, args.TypedSpec().Value.GetArgs())
	} else if len(args.TypedSpec().Value.GetArgs()) > 0 {
		e.unmanaged = append(e.unmanaged, machine)
	}

	return nil
}
