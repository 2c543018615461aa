package omnisim

import (
	"context"
	"errors"
	"fmt"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/cel"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	"sigs.k8s.io/yaml"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	operator "omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// validateInstallDisk refuses both fields and neither, and a selector that is no expression about a disk.
func validateInstallDisk(config *operator.MachineInstallDiskConfig) error {
	spec := config.TypedSpec()

	switch {
	case spec.Disk != "" && spec.DiskSelector != "":
		return errors.New("disk and disk selector are mutually exclusive")
	case spec.Disk == "" && spec.DiskSelector == "":
		return errors.New("either disk or disk selector must be set")
	case spec.DiskSelector == "":
		return nil
	}

	if _, err := cel.ParseBooleanExpression(spec.DiskSelector, celenv.DiskLocator()); err != nil {
		return fmt.Errorf("disk selector is not a valid boolean disk expression: %w", err)
	}

	return nil
}

// migrateInstallDisks is a migration of Omni 1.11. Each patch that templates of older versions made for the install disk
// of a machine becomes a MachineInstallDiskConfig, and is destroyed whatever finalizers it has. One that exists stays as
// it is. Templates own it if they own the cluster.
func migrateInstallDisks(ctx context.Context, st state.State) error {
	patches, err := safe.StateListAll[*omni.ConfigPatch](ctx, st)
	if err != nil {
		return err
	}

	for patch := range patches.All() {
		disk := installDiskOf(patch)
		if disk == "" {
			continue
		}

		machine, _ := patch.Metadata().Labels().Get(omni.LabelClusterMachine)
		config := operator.NewMachineInstallDiskConfig(machine)
		config.TypedSpec().Disk = disk

		cluster, err := find[*omni.Cluster](ctx, st, omni.NewCluster(clusterOf(patch)).Metadata())
		if err != nil {
			return err
		}

		if cluster != nil {
			if _, managed := cluster.Metadata().Annotations().Get(omni.ResourceManagedByClusterTemplates); managed {
				config.Metadata().Annotations().Set(omni.ResourceManagedByClusterTemplates, "")
			}
		}

		if err := st.Create(ctx, config); err != nil && !state.IsConflictError(err) {
			return fmt.Errorf("create the install disk of machine %s: %w", machine, err)
		}

		if err := st.RemoveFinalizer(ctx, patch.Metadata(), *patch.Metadata().Finalizers()...); err != nil {
			return fmt.Errorf("remove the finalizers of patch %s: %w", patch.Metadata().ID(), err)
		}

		if err := st.Destroy(ctx, patch.Metadata()); err != nil {
			return fmt.Errorf("destroy patch %s: %w", patch.Metadata().ID(), err)
		}
	}

	return nil
}

// installDiskOf returns the disk of a patch that templates made for the install disk of a machine and that has no other
// content; empty for every other patch.
func installDiskOf(patch *omni.ConfigPatch) string {
	if patch.Metadata().Owner() != "" || !isInstallDiskPatch(patch) {
		return ""
	}

	text, err := patchText(patch)
	if err != nil {
		return ""
	}

	var content map[string]map[string]map[string]any
	if err := yaml.Unmarshal(text, &content); err != nil || len(content) != 1 || len(content["machine"]) != 1 || len(content["machine"]["install"]) != 1 {
		return ""
	}

	disk, _ := content["machine"]["install"]["disk"].(string)

	return disk
}

// isInstallDiskPatch reports whether a patch has the ID that templates before 1.11 gave to that of an install disk.
func isInstallDiskPatch(patch *omni.ConfigPatch) bool {
	machine, ok := patch.Metadata().Labels().Get(omni.LabelClusterMachine)

	return ok && machine != "" && patch.Metadata().ID() == "000-cm-"+machine+"-install-disk"
}
