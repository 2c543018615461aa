package template

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

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
		EnableWorkloadProxy:           in.EnableWorkloadProxy,
		UseEmbeddedDiscoveryService:   in.UseEmbeddedDiscoveryService,
		DiskEncryption:                in.DiskEncryption,
		EnableNodeAuditSkip:           in.EnableNodeAuditSkip,
		DisablePublicDiscoveryService: in.DisablePublicDiscoveryService,
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

	if spec.Install != nil && *spec.Install != (v1alpha1.MachineInstall{}) {
		document.Install = &installSection{Disk: spec.Install.Disk, DiskSelector: spec.Install.DiskSelector}
	}

	return document, nil
}

// patches keeps the order: Omni applies patches in it, and derives their IDs from it.
func (b builder) patches(in []v1alpha1.Patch) ([]patchEntry, error) {
	entries := make([]patchEntry, 0, len(in))

	for i, patch := range in {
		var blocks []v1alpha1.FreeForm
		if patch.Inline != nil {
			blocks = []v1alpha1.FreeForm{*patch.Inline}
		}

		text, err := b.text(blocks, patch.ValueFrom)
		if err != nil {
			return nil, fmt.Errorf("patch %d (%s): %w", i, cmp.Or(patch.IDOverride, patch.Name), err)
		}

		entries = append(entries, patchEntry{
			Name:        patch.Name,
			IDOverride:  patch.IDOverride,
			Labels:      patch.Labels,
			Annotations: patch.Annotations,
			Inline:      text,
		})
	}

	return entries, nil
}

// manifests keeps the order, from which Omni derives the IDs.
func (b builder) manifests(in []v1alpha1.Manifest) ([]manifestEntry, error) {
	entries := make([]manifestEntry, 0, len(in))

	for _, manifest := range in {
		text, err := b.text(manifest.Inline, manifest.ValueFrom)
		if err != nil {
			return nil, fmt.Errorf("manifest %q: %w", manifest.Name, err)
		}

		entries = append(entries, manifestEntry{
			Name:        manifest.Name,
			Mode:        string(cmp.Or(manifest.Mode, v1alpha1.ManifestFull)),
			Labels:      manifest.Labels,
			Annotations: manifest.Annotations,
			Inline:      text,
		})
	}

	return entries, nil
}

func (b builder) healthchecks(in []v1alpha1.Healthcheck) ([]healthcheckEntry, error) {
	entries := make([]healthcheckEntry, 0, len(in))

	for _, check := range in {
		name := cmp.Or(check.IDOverride, check.Name)
		if check.Job == nil {
			return nil, fmt.Errorf("healthcheck %q: job is missing", name)
		}

		text, err := canonicalText(b.within, *check.Job)
		if err != nil {
			return nil, fmt.Errorf("healthcheck %q: %w", name, err)
		}

		entries = append(entries, healthcheckEntry{
			Name:        check.Name,
			IDOverride:  check.IDOverride,
			Labels:      check.Labels,
			Annotations: check.Annotations,
			Interval:    string(check.Interval),
			Job:         literal(text),
		})
	}

	return entries, nil
}

// text is the content of a block: the inline objects in canonical form, or the value as it is.
func (b builder) text(inline []v1alpha1.FreeForm, from *v1alpha1.ValueSource) (literal, error) {
	switch {
	case len(inline) > 0 && from == nil:
		text, err := canonicalText(b.within, inline...)

		return literal(text), err
	case from != nil && len(inline) == 0:
		return b.value(*from)
	default:
		return "", errors.New("exactly one of inline and valueFrom is needed")
	}
}

func (b builder) value(from v1alpha1.ValueSource) (literal, error) {
	key, err := keyOf(from)
	if err != nil {
		return "", err
	}

	text, err := b.values(from)
	if err != nil {
		return "", fmt.Errorf("key %q of %s %q: %w", key.ref.Key, key.kind, key.ref.Name, err)
	}

	if !utf8.ValidString(text) {
		return "", fmt.Errorf("key %q of %s %q: %w", key.ref.Key, key.kind, key.ref.Name, errNotText)
	}

	if err := b.within.take(len(text)); err != nil {
		return "", err
	}

	return literal(text), nil
}

// errNotText is what a value that is not UTF-8 gets; YAML has no way to carry it as text.
var errNotText = errors.New("the text is not valid UTF-8")

// literal is text that a reader of the template must get back byte for byte.
type literal string

// MarshalYAML writes a block of lines where that is exact, and a quoted string with escapes where it is not.
func (l literal) MarshalYAML() (any, error) {
	text := string(l)
	if !utf8.ValidString(text) {
		return nil, errNotText
	}

	style := yaml.DoubleQuotedStyle
	if fitsBlock(text) {
		style = yaml.LiteralStyle
	}

	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: style, Value: text}, nil
}

// fitsBlock reports whether every YAML reader gets the text back from a literal block. Leading white space would
// need an indentation indicator; carriage returns and Unicode's line separators are line breaks to some readers
// and not to others; invisible characters are not allowed in a block.
func fitsBlock(text string) bool {
	if strings.TrimSpace(text) == "" || strings.ContainsRune(" \t\n", rune(text[0])) || strings.HasSuffix(text, "\n\n") {
		return false
	}

	for _, r := range text {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			return false
		}
	}

	for line := range strings.Lines(text) {
		content := strings.TrimSuffix(line, "\n")
		if strings.HasSuffix(content, " ") || strings.HasSuffix(content, "\t") {
			return false
		}
	}

	return true
}
