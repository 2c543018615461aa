package template

import (
	"fmt"
	"maps"
	"slices"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// builder translates objects into documents.
type builder struct {
	values ValueFunc
	within *budget // of the text of all blocks
}

func (b builder) cluster(cluster *v1alpha1.OmniCluster, mark Mark) (*clusterDocument, error) {
	spec := &cluster.Spec

	patches, err := b.patches(spec.Patches)
	if err != nil {
		return nil, err
	}

	manifests, err := b.manifests(spec.Kubernetes.Manifests)
	if err != nil {
		return nil, err
	}

	healthchecks, err := b.healthchecks(spec.Kubernetes.Healthchecks)
	if err != nil {
		return nil, err
	}

	return &clusterDocument{
		Kind:        "Cluster",
		Name:        cluster.EffectiveClusterName(),
		Labels:      spec.Labels,
		Annotations: marked(spec.Annotations, mark),
		Kubernetes: kubernetesSection{
			Version:      spec.Kubernetes.Version,
			Manifests:    manifests,
			Healthchecks: healthchecks,
		},
		Talos:            versionSection{Version: spec.Talos.Version},
		Features:         features(spec.Features),
		Patches:          patches,
		SystemExtensions: spec.SystemExtensions,
		KernelArgs:       spec.KernelArgs,
	}, nil
}

// marked puts the mark over the user's annotations. Admission refuses these keys, but an object may be older
// than the rule, so that a key which the mark does not use must go, too.
func marked(annotations map[string]string, mark Mark) map[string]string {
	result := maps.Clone(annotations)
	if result == nil {
		result = map[string]string{}
	}

	result[v1alpha1.MarkOwnerUID] = mark.UID
	result[v1alpha1.MarkOwnerNamespace] = mark.Namespace
	result[v1alpha1.MarkOwnerName] = mark.Name

	setOrDelete(result, v1alpha1.MarkHub, mark.Hub)
	setOrDelete(result, v1alpha1.MarkManagementCluster, mark.ManagementCluster)

	return result
}

func setOrDelete(annotations map[string]string, key, value string) {
	if value == "" {
		delete(annotations, key)
	} else {
		annotations[key] = value
	}
}

func features(in v1alpha1.OmniClusterFeatures) featuresSection {
	section := featuresSection{
		EnableWorkloadProxy:         in.EnableWorkloadProxy,
		UseEmbeddedDiscoveryService: in.UseEmbeddedDiscoveryService,
		DiskEncryption:              in.DiskEncryption,
	}

	if in.BackupConfiguration != nil {
		section.BackupConfiguration = &backupSection{Interval: string(in.BackupConfiguration.Interval)}
	}

	return section
}

func (b builder) controlPlane(controlPlane *v1alpha1.OmniControlPlane) (*machineSetDocument, error) {
	spec := &controlPlane.Spec

	document, err := b.machineSet("ControlPlane", spec.MachineSetMachines, spec.MachineConfiguration)
	if err != nil {
		return nil, err
	}

	document.UpgradeStrategy = strategy(spec.UpgradeStrategy)

	if spec.BootstrapSpec != nil {
		document.BootstrapSpec = &bootstrapSection{
			ClusterUUID: spec.BootstrapSpec.ClusterUUID,
			Snapshot:    spec.BootstrapSpec.Snapshot,
		}
	}

	return document, nil
}

func (b builder) workers(workers *v1alpha1.OmniWorkers) (*machineSetDocument, error) {
	spec := &workers.Spec

	document, err := b.machineSet("Workers", spec.MachineSetMachines, spec.MachineConfiguration)
	if err != nil {
		return nil, err
	}

	document.Name = workers.EffectiveWorkerSetName()
	document.UpdateStrategy = strategy(spec.UpdateStrategy)
	document.UpgradeStrategy = strategy(spec.UpgradeStrategy)
	document.DeleteStrategy = strategy(spec.DeleteStrategy)

	return document, nil
}

func (b builder) machineSet(
	kind string, machines v1alpha1.MachineSetMachines, config v1alpha1.MachineConfiguration,
) (*machineSetDocument, error) {
	patches, err := b.patches(config.Patches)
	if err != nil {
		return nil, err
	}

	class, err := machineClass(machines.MachineClass)
	if err != nil {
		return nil, err
	}

	return &machineSetDocument{
		Kind:        kind,
		Labels:      config.Labels,
		Annotations: config.Annotations,
		// The list is a set: the order in which it was written says nothing.
		Machines:         slices.Sorted(slices.Values(machines.MachineIDs())),
		MachineClass:     class,
		Patches:          patches,
		SystemExtensions: config.SystemExtensions,
		KernelArgs:       config.KernelArgs,
	}, nil
}

// machineClass refuses a missing size, which Omni would read as 0: a set without machines.
func machineClass(class *v1alpha1.MachineClass) (*machineClassSection, error) {
	if class == nil {
		return nil, nil //nolint:nilnil // none is no error
	}

	count, unlimited, err := class.Count()

	switch {
	case err != nil:
		return nil, fmt.Errorf("machineClass: %w", err)
	case unlimited:
		return &machineClassSection{Name: class.Name, Size: v1alpha1.UnlimitedSize}, nil
	default:
		return &machineClassSection{Name: class.Name, Size: count}, nil
	}
}

func strategy(in *v1alpha1.Strategy) *strategySection {
	if in == nil {
		return nil
	}

	section := &strategySection{Type: string(in.Type)}
	if in.Rolling != nil {
		// Omni would take 0 at its word, and change no machine.
		section.Rolling = &rollingSection{MaxParallelism: max(in.Rolling.MaxParallelism, 1)}
	}

	return section
}

func (b builder) machine(machine *v1alpha1.OmniMachine) (*machineDocument, error) {
	spec := &machine.Spec

	patches, err := b.patches(spec.Patches)
	if err != nil {
		return nil, err
	}

	document := &machineDocument{
		Kind:             "Machine",
		Name:             machine.EffectiveMachineID(),
		Labels:           spec.Labels,
		Annotations:      spec.Annotations,
		Locked:           spec.Locked,
		Patches:          patches,
		SystemExtensions: spec.SystemExtensions,
		KernelArgs:       spec.KernelArgs,
	}

	if spec.Install.Disk != "" {
		document.Install = &installSection{Disk: spec.Install.Disk}
	}

	return document, nil
}
