package omnisim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"sigs.k8s.io/yaml"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

func (r rules) createConfigPatch(ctx context.Context, patch *omni.ConfigPatch) error {
	if name := clusterOf(patch); name != "" {
		cluster, err := find[*omni.Cluster](ctx, r.state, omni.NewCluster(name).Metadata())
		if err != nil {
			return err
		}

		if cluster != nil && cluster.Metadata().Phase() == resource.PhaseTearingDown {
			return fmt.Errorf("cluster %q is tearing down", name)
		}
	}

	if name := machineSetOf(patch); name != "" {
		set, err := find[*omni.MachineSet](ctx, r.state, omni.NewMachineSet(name).Metadata())
		if err != nil {
			return err
		}

		if set != nil && set.Metadata().Phase() == resource.PhaseTearingDown {
			return fmt.Errorf("machine set %q is tearing down", name)
		}
	}

	data, err := patchText(patch)
	if err != nil {
		return err
	}

	return r.validatePatch(data)
}

// updateConfigPatch validates the text only if it changes.
func (r rules) updateConfigPatch(old, updated *omni.ConfigPatch) error {
	before, err := patchText(old)
	if err != nil {
		return err
	}

	after, err := patchText(updated)
	if err != nil || bytes.Equal(before, after) {
		return err
	}

	return r.validatePatch(after)
}

func patchText(patch *omni.ConfigPatch) ([]byte, error) {
	buffer, err := patch.TypedSpec().Value.GetUncompressedData()
	if err != nil {
		return nil, err
	}

	defer buffer.Free()

	return bytes.Clone(buffer.Data()), nil
}

// validateExtensions refuses extensions that do not exist for the cluster's version of Talos.
func (r rules) validateExtensions(ctx context.Context, configuration *omni.ExtensionsConfiguration) error {
	names := configuration.TypedSpec().Value.GetExtensions()
	if len(names) == 0 {
		return nil
	}

	clusterName := clusterOf(configuration)
	if clusterName == "" {
		return errors.New("extensions configuration with a non-empty extensions list must target a cluster via the cluster label")
	}

	cluster, err := find[*omni.Cluster](ctx, r.state, omni.NewCluster(clusterName).Metadata())
	if err != nil {
		return err
	}

	if cluster == nil {
		return fmt.Errorf("cluster %q does not exist", clusterName)
	}

	version := cluster.TypedSpec().Value.TalosVersion
	seen := map[string]bool{}

	for i, name := range names {
		official := name
		if !strings.Contains(official, "/") {
			official = "siderolabs/" + official
		}

		if !r.catalogue.hasExtension(official, version) {
			return fmt.Errorf("extension %q (entry %d) is not available for Talos version %q", name, i, version)
		}

		if seen[official] {
			return fmt.Errorf("extension %q (entry %d) is listed more than once", name, i)
		}

		seen[official] = true
	}

	return nil
}

func validateKernelArgs(args *omni.KernelArgs) error {
	const maxCount, maxLength = 64, 256

	list := args.TypedSpec().Value.GetArgs()
	if len(list) > maxCount {
		return fmt.Errorf("args has too many entries: %d (max %d)", len(list), maxCount)
	}

	for i, arg := range list {
		if len(arg) > maxLength {
			return fmt.Errorf("args[%d] is too long: %d bytes (max %d)", i, len(arg), maxLength)
		}
	}

	return nil
}

func validateManifests(group *omni.KubernetesManifestGroup) error {
	if group.TypedSpec().Value.Mode == specs.KubernetesManifestGroupSpec_UNKNOWN {
		return errors.New("the manifest should have mode field set")
	}

	if _, ok := group.Metadata().Labels().Get(omni.LabelCluster); !ok {
		return fmt.Errorf("the resource must have %s label set", omni.LabelCluster)
	}

	if _, ok := group.Metadata().Labels().Get(omni.LabelSystemManifest); ok {
		return errors.New("system manifests can't be created by the user")
	}

	_, err := group.TypedSpec().Value.GetManifests()

	return err
}

func validateHealthCheck(check *omni.KubernetesHealthCheck) error {
	const minInterval = 5 * time.Second

	spec := check.TypedSpec().Value
	if len(spec.GetJob()) == 0 {
		return errors.New("healthcheck job manifest must be set")
	}

	var job struct {
		Kind string `json:"kind"`
	}

	if err := yaml.Unmarshal([]byte(spec.GetJob()), &job); err != nil {
		return fmt.Errorf("healthcheck job manifest is invalid: %w", err)
	}

	if job.Kind != "" && job.Kind != "Job" {
		return fmt.Errorf("healthcheck job manifest is invalid: kind %q is not Job", job.Kind)
	}

	if interval := spec.GetInterval().AsDuration(); interval > 0 && interval < minInterval {
		return fmt.Errorf("healthcheck interval must be at least %s", minInterval)
	}

	return nil
}
