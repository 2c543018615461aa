package plan

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/template"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// The install disk of a machine. Omni 1.11 and later has a MachineInstallDiskConfig for it, and refuses the patch of older
// releases, which is what the library's translation makes of a Machine document. Such an Omni has turned each of these
// patches into a MachineInstallDiskConfig when it was upgraded.

// install is the section of a Machine document about the disk that Talos is installed on.
type install struct {
	Disk         string `yaml:"disk"`
	DiskSelector string `yaml:"diskSelector"`
}

// checkServed returns ErrUnserved if the template needs more than an Omni without MachineInstallDiskConfigs has.
func (h heads) checkServed() error {
	for _, machine := range slices.Sorted(maps.Keys(h.installs)) {
		if h.installs[machine].DiskSelector != "" {
			return fmt.Errorf("%w: install.diskSelector of machine %s needs Omni 1.11 or later: set install.disk instead, or upgrade Omni", omni.ErrUnserved, machine)
		}
	}

	return nil
}

// withInstallDisks returns the template as an Omni with MachineInstallDiskConfigs takes it. The errors are ErrTemplate.
func (p *parsed) withInstallDisks(document []byte) (*parsed, error) {
	if len(p.installs) == 0 {
		return p, nil
	}

	drop := unknownKeys()
	drop["install"] = append(drop["install"], "disk")

	var err error

	result := *p

	if result.loaded, err = template.Load(bytes.NewReader(without(document, drop))); err != nil {
		return nil, templateError(err)
	}

	if result.resources, err = result.loaded.Translate(); err != nil {
		return nil, templateError(err)
	}

	for _, machine := range slices.Sorted(maps.Keys(p.installs)) {
		config := omni.NewMachineInstallDiskConfig(machine)
		config.Metadata().Annotations().Set(omnires.ResourceManagedByClusterTemplates, "")
		config.TypedSpec().Disk, config.TypedSpec().DiskSelector = p.installs[machine].Disk, p.installs[machine].DiskSelector
		result.resources = append(result.resources, config)
	}

	return &result, nil
}

// addInstallDisks adds what is to be done about install disks to the library's result: about those that the template asks
// for, and those of the machines that the cluster has. What no template made is left alone, unless the template has a
// choice of its own.
func addInstallDisks(ctx context.Context, st state.State, result *template.SyncResult, wanted, nodes []resource.Resource) error {
	asked, listed := map[string]*omni.MachineInstallDiskConfig{}, map[string]bool{}

	for _, item := range wanted {
		if config, isConfig := item.(*omni.MachineInstallDiskConfig); isConfig {
			asked[config.Metadata().ID()] = config
		}

		listed[item.Metadata().ID()] = listed[item.Metadata().ID()] || item.Metadata().Type() == omnires.MachineSetNodeType
	}

	machines := slices.Collect(maps.Keys(asked))
	for _, node := range requested(nodes) {
		machines = append(machines, node.Metadata().ID())
	}

	slices.Sort(machines)

	for _, machine := range slices.Compact(machines) {
		live, err := readInstallDisk(ctx, st, machine)

		switch {
		case err != nil:
			return err
		case live == nil && asked[machine] == nil:
		case live == nil:
			result.Create = append(result.Create, asked[machine])
		case asked[machine] != nil:
			result.Update = append(result.Update, template.UpdateChange{Old: live, New: inPlaceOf(live, asked[machine])})
		case listed[machine]:
			destroyInstallDisk(result, live)
		default:
			releaseInstallDisk(result, live)
		}
	}

	return nil
}

// readInstallDisk returns nil if nobody has chosen a disk for the machine.
func readInstallDisk(ctx context.Context, st state.State, machine string) (*omni.MachineInstallDiskConfig, error) {
	live, err := safe.StateGetByID[*omni.MachineInstallDiskConfig](ctx, st, machine)
	if state.IsNotFoundError(err) {
		return nil, nil //nolint:nilnil // none is no error
	}

	if err != nil {
		return nil, fmt.Errorf("read MachineInstallDiskConfig %q: %w", machine, err)
	}

	return live, nil
}

func isOfTemplates(item resource.Resource) bool {
	_, managed := item.Metadata().Annotations().Get(omnires.ResourceManagedByClusterTemplates)

	return managed
}

// destroyInstallDisk gives the choice back to Omni, for a machine that stays and whose document has none any more.
func destroyInstallDisk(result *template.SyncResult, live resource.Resource) {
	const last = 1 // phase: after machines and their sets

	if !isOfTemplates(live) {
		return
	}

	for len(result.Destroy) <= last {
		result.Destroy = append(result.Destroy, nil)
	}

	result.Destroy[last] = append(result.Destroy[last], live)
}

// releaseInstallDisk leaves the choice to the machine that leaves: templates do not own it any more.
func releaseInstallDisk(result *template.SyncResult, live resource.Resource) {
	if !isOfTemplates(live) || live.Metadata().Phase() != resource.PhaseRunning {
		return
	}

	released := live.DeepCopy()
	released.Metadata().Annotations().Delete(omnires.ResourceManagedByClusterTemplates)
	result.Update = append(result.Update, template.UpdateChange{Old: live, New: released})
}

// changedDisk names the fields of a MachineInstallDiskConfig that differ.
func changedDisk(live, updated resource.Resource) []string {
	was, wasConfig := live.(*omni.MachineInstallDiskConfig)
	is, isConfig := updated.(*omni.MachineInstallDiskConfig)

	if !wasConfig || !isConfig {
		return nil
	}

	before, after := was.TypedSpec().Fields(), is.TypedSpec().Fields()

	return slices.DeleteFunc(sortedKeys(before, after), func(name string) bool { return before[name] == after[name] })
}
