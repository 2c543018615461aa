package observe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/template/operations"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
)

// Exported is a live cluster as a template.
type Exported struct {
	// Live is the result of Inspect; Exists is true.
	Live omni.Live
	// Template is the cluster template: the output of the library's ExportTemplate, with every content byte for byte as
	// Omni stores it, and with what the library leaves out (see Export). It includes the owner's mark.
	Template []byte
	// Unmanaged are machines with kernel arguments that no template manages, such as those set in Omni's UI.
	// They are not in the template, and a sync leaves them as they are.
	Unmanaged []string
	// Disabled are the IDs of patches that somebody disabled in Omni. They are in the template, which cannot say that.
	Disabled []string
}

// ListClusters returns the names of all clusters, sorted, without those that are being torn down.
func ListClusters(ctx context.Context, st state.State) ([]string, error) {
	clusters, err := safe.StateListAll[*omnires.Cluster](ctx, st)
	if err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}

	var names []string

	for cluster := range clusters.All() {
		if !omni.LiveOf(cluster).TearingDown {
			names = append(names, cluster.Metadata().ID())
		}
	}

	slices.Sort(names)

	return names, nil
}

// Export returns a live cluster as a template.
//
// The library's export is the base. Export restores what it loses, from the resources themselves:
//   - contents (patches, manifests, jobs): its YAML writer normalises line breaks;
//   - a set's strategies without a rolling configuration;
//   - the difference between no kernel arguments and unmanaged arguments: it exports all of them or none;
//   - the name of the default worker set;
//   - that backups are disabled although an interval is set;
//   - features of Omni 1.10, if they are on;
//   - the install disks of Omni 1.11, if installDisks says that Omni serves MachineInstallDiskConfigs.
//
// A comparison of the template with Omni shows what no template can express: see plan.Inexpressible.
//
// Errors: ErrNoCluster, ErrClusterTearingDown, ErrNotExportable, ErrChangedMeanwhile, or those of the reads. None holds
// any content.
func Export(ctx context.Context, st state.State, cluster string, installDisks bool) (*Exported, error) {
	live, err := omni.Inspect(ctx, st, cluster)

	switch {
	case err != nil:
		return nil, err
	case !live.Exists:
		return nil, omni.ErrNoCluster
	case live.TearingDown:
		return nil, omni.ErrClusterTearingDown
	}

	var text bytes.Buffer

	if _, err := operations.ExportTemplate(ctx, state.WrapCore(checkablePatches{st}), cluster, false, &text); err != nil {
		return nil, exportError(err)
	}

	exact, err := readExact(ctx, st, cluster, installDisks)
	if err != nil {
		return nil, err
	}

	template, err := exact.complete(text.Bytes())
	if err != nil {
		return nil, fmt.Errorf("complete the exported template: %w", err)
	}

	return &Exported{Live: live, Template: template, Unmanaged: exact.unmanaged, Disabled: exact.disabled}, nil
}

// checkablePatches is a state without the documents of Talos of a kind that our Talos library does not know. The library's
// export would refuse them; the text that it writes gets the contents from the resources themselves.
type checkablePatches struct{ state.CoreState }

// List implements state.CoreState.
func (c checkablePatches) List(ctx context.Context, kind resource.Kind, options ...state.ListOption) (resource.List, error) {
	list, err := c.CoreState.List(ctx, kind, options...)
	list.Items = slices.Clone(list.Items) // those of the local copy belong to it

	for i, item := range list.Items {
		patch, isPatch := item.(*omnires.ConfigPatch)
		if !isPatch {
			continue
		}

		content, err := bounds.Inflate(patch.TypedSpec().Value)
		if err != nil {
			continue // the library reads it, too, and says so
		}

		if checkable, less := template.CheckablePatch([]byte(content)); less {
			list.Items[i], err = withContent(patch, checkable)
			if err != nil {
				return list, fmt.Errorf("read ConfigPatch %q: %w", patch.Metadata().ID(), err)
			}
		}
	}

	return list, err
}

// withContent returns a copy of a patch with another content.
func withContent(patch *omnires.ConfigPatch, content []byte) (*omnires.ConfigPatch, error) {
	copied := omnires.NewConfigPatch(patch.Metadata().ID())
	*copied.Metadata() = patch.Metadata().Copy()

	return copied, copied.TypedSpec().Value.SetUncompressedData(content)
}

// exportError separates Omni's errors, which have a code, from the library's own.
func exportError(err error) error {
	if _, coded := omni.CodeOf(err); coded || omni.Classify(err) != omni.ClassTransient {
		return fmt.Errorf("export the template: %w", err)
	}

	return fmt.Errorf("%w: %w", omni.ErrNotExportable, contentFree(err))
}

// contentFree cuts off the part of a patch that the library's decoder quotes, which may be secret.
func contentFree(err error) error {
	text := err.Error()

	for _, quoting := range []string{"unknown keys found during decoding:", "cannot unmarshal", "cannot construct"} {
		if before, _, found := strings.Cut(text, quoting); found {
			return errors.New(before + "a patch that the Omni client does not take as a Talos configuration (its content is not shown)")
		}
	}

	return err
}

// exactParts are the parts that the library's export does not reproduce exactly.
type exactParts struct {
	cluster    string
	backups    bool
	features   *specs.ClusterSpec_Features
	patches    map[string]string // contents by ID
	jobs       map[string]string // jobs of healthchecks by ID
	manifests  []exactManifest   // in the order of the template
	sets       map[string]*omnires.MachineSet
	kernelArgs map[string][]string // by machine; only those that a template manages
	unmanaged  []string            // machines with other kernel arguments
	disabled   []string            // patches

	installDisks bool                                          // whether Omni serves MachineInstallDiskConfigs
	disks        map[string]*omni.MachineInstallDiskConfigSpec // by machine
}

type exactManifest struct{ name, content string }

// readExact reads the resources of a cluster that have no owner in Omni: those that users or templates made.
func readExact(ctx context.Context, st state.State, cluster string, installDisks bool) (*exactParts, error) {
	exact := &exactParts{
		cluster: cluster, patches: map[string]string{}, jobs: map[string]string{}, sets: map[string]*omnires.MachineSet{},
		kernelArgs: map[string][]string{}, disks: map[string]*omni.MachineInstallDiskConfigSpec{}, installDisks: installDisks,
	}

	found, err := omni.ReadCluster(ctx, st, cluster)
	if err != nil {
		return nil, err
	}

	if found == nil {
		return nil, omni.ErrChangedMeanwhile
	}

	exact.backups = found.TypedSpec().Value.GetBackupConfiguration().GetEnabled()
	exact.features = found.TypedSpec().Value.GetFeatures()

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

		if _, disabled := item.Metadata().Labels().Get(omni.LabelDisabled); disabled {
			e.disabled = append(e.disabled, id)
		}
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
		if err := e.readInstallDisk(ctx, st, id); err != nil {
			return err
		}

		return e.readKernelArgs(ctx, st, id)
	}

	return nil
}

// readInstallDisk reads the choice of a disk, whoever made it: a document that repeats it changes nothing on the machine.
func (e *exactParts) readInstallDisk(ctx context.Context, st state.State, machine string) error {
	if !e.installDisks {
		return nil
	}

	config, err := safe.StateGetByID[*omni.MachineInstallDiskConfig](ctx, st, machine)
	if state.IsNotFoundError(err) {
		return nil
	}

	if err != nil {
		return fmt.Errorf("read MachineInstallDiskConfig %q: %w", machine, err)
	}

	e.disks[machine] = config.TypedSpec()

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
