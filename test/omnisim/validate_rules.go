package omnisim

import (
	"context"
	"errors"
	"fmt"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	operator "omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// rules are Omni's conditions on single resources and on what they refer to.
type rules struct {
	state     state.State
	catalogue *Catalogue
	version   *speaks
	// refuseConcurrentUpgrades, embeddedDiscovery and newerTalos are those of Options.
	refuseConcurrentUpgrades, embeddedDiscovery, newerTalos bool
}

// create returns the reasons to refuse a new resource.
func (r rules) create(ctx context.Context, res resource.Resource) []error {
	reasons := metadataReasons(nil, res.Metadata())

	switch typed := res.(type) {
	case *omni.Cluster:
		reasons = append(reasons, r.createCluster(ctx, typed)...)
	case *omni.MachineSet:
		reasons = append(reasons, requireLabels(typed, omni.LabelCluster)...)
		reasons = appendReason(reasons, r.createMachineSet(ctx, typed))
	case *omni.MachineSetNode:
		reasons = append(reasons, requireLabels(typed, omni.LabelCluster, omni.LabelMachineSet)...)
		reasons = appendReason(reasons, r.createMachineSetNode(ctx, typed))
	case *omni.ConfigPatch:
		reasons = appendReason(reasons, r.createConfigPatch(ctx, typed))
	case *omni.MachineClass:
		reasons = appendReason(reasons, validateMachineClass(typed))
	case *omni.ExtensionsConfiguration:
		reasons = appendReason(reasons, r.validateExtensions(ctx, typed))
	case *omni.KernelArgs:
		reasons = appendReason(reasons, validateKernelArgs(typed))
	case *omni.KubernetesManifestGroup:
		reasons = appendReason(reasons, validateManifests(typed))
	case *omni.KubernetesHealthCheck:
		reasons = appendReason(reasons, validateHealthCheck(typed))
	case *operator.MachineInstallDiskConfig:
		reasons = appendReason(reasons, validateInstallDisk(typed))
	}

	return reasons
}

// update returns the reasons to refuse a change.
func (r rules) update(ctx context.Context, old, updated resource.Resource) []error {
	reasons := metadataReasons(old.Metadata(), updated.Metadata())

	switch typed := updated.(type) {
	case *omni.Cluster:
		reasons = append(reasons, r.updateCluster(ctx, old.(*omni.Cluster), typed)...)
	case *omni.MachineSet:
		reasons = append(reasons, requireLabels(typed, omni.LabelCluster)...)
		reasons = append(reasons, keepLabels(old, typed, omni.LabelCluster)...)
		reasons = appendReason(reasons, r.updateMachineSet(ctx, old.(*omni.MachineSet), typed))
	case *omni.MachineSetNode:
		reasons = append(reasons, requireLabels(typed, omni.LabelCluster, omni.LabelMachineSet)...)
		reasons = append(reasons, keepLabels(old, typed, omni.LabelCluster, omni.LabelMachineSet)...)
		reasons = appendReason(reasons, r.updateMachineSetNode(ctx, old.(*omni.MachineSetNode), typed))
	case *omni.ConfigPatch:
		reasons = appendReason(reasons, r.updateConfigPatch(old.(*omni.ConfigPatch), typed))
	case *omni.MachineClass:
		reasons = appendReason(reasons, validateMachineClass(typed))
	case *omni.ExtensionsConfiguration:
		reasons = appendReason(reasons, r.validateExtensions(ctx, typed))
	case *omni.KernelArgs:
		reasons = appendReason(reasons, validateKernelArgs(typed))
	case *omni.KubernetesManifestGroup:
		reasons = appendReason(reasons, validateManifests(typed))
	case *omni.KubernetesHealthCheck:
		reasons = appendReason(reasons, validateHealthCheck(typed))
	case *operator.MachineInstallDiskConfig:
		reasons = appendReason(reasons, validateInstallDisk(typed))
	}

	return reasons
}

// destroy returns the reasons to refuse a destroy.
func (r rules) destroy(ctx context.Context, res resource.Resource) []error {
	switch typed := res.(type) {
	case *omni.Cluster:
		return appendReason(nil, r.destroyCluster(ctx, typed))
	case *omni.MachineSet:
		return appendReason(nil, r.destroyMachineSet(ctx, typed))
	case *omni.MachineSetNode:
		return appendReason(nil, r.destroyMachineSetNode(ctx, typed))
	case *omni.MachineClass:
		return appendReason(nil, r.destroyMachineClass(ctx, typed))
	default:
		return nil
	}
}

func appendReason(reasons []error, reason error) []error {
	if reason == nil {
		return reasons
	}

	return append(reasons, reason)
}

// find returns a resource by ID, or nil if there is none.
func find[T interface {
	comparable
	resource.Resource
}](ctx context.Context, st state.State, ptr resource.Pointer) (T, error) {
	found, err := safe.StateGet[T](ctx, st, ptr)
	if state.IsNotFoundError(err) {
		var none T

		return none, nil
	}

	return found, err
}

func requireLabels(res resource.Resource, keys ...string) []error {
	var reasons []error

	for _, key := range keys {
		value, ok := res.Metadata().Labels().Get(key)

		switch {
		case !ok:
			reasons = append(reasons, fmt.Errorf("label %q does not exist", key))
		case value == "":
			reasons = append(reasons, fmt.Errorf("label %q has empty value", key))
		}
	}

	return reasons
}

func keepLabels(old, updated resource.Resource, keys ...string) []error {
	var reasons []error

	for _, key := range keys {
		before, _ := old.Metadata().Labels().Get(key)
		after, _ := updated.Metadata().Labels().Get(key)

		if before != "" && before != after {
			reasons = append(reasons, fmt.Errorf("changing value of label %q from %q to %q", key, before, after))
		}
	}

	return reasons
}

// metadataReasons checks every type: an ID, and labels and annotations of limited size.
func metadataReasons(old, updated *resource.Metadata) []error {
	const maxID, maxKey, maxValue = 1024, 1024, 16 * 1024

	var reasons []error

	if old == nil {
		switch id := updated.ID(); {
		case id == "":
			reasons = append(reasons, errors.New("resource ID must not be empty"))
		case len(id) > maxID:
			reasons = append(reasons, fmt.Errorf("resource ID is too long: %d bytes (max %d)", len(id), maxID))
		}
	}

	check := func(kind string, entries map[string]string) {
		for key, value := range entries {
			switch {
			case key == "":
				reasons = append(reasons, fmt.Errorf("%s key must not be empty", kind))
			case len(key) > maxKey:
				reasons = append(reasons, fmt.Errorf("%s key is too long: %d bytes (max %d)", kind, len(key), maxKey))
			case len(value) > maxValue:
				reasons = append(reasons, fmt.Errorf("%s value for key %q is too long: %d bytes (max %d)", kind, key, len(value), maxValue))
			}
		}
	}

	check("label", updated.Labels().Raw())
	check("annotation", updated.Annotations().Raw())

	return reasons
}
