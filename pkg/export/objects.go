package export

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
)

// ObjectOptions say how objects are made.
type ObjectOptions struct {
	// Namespace of every object. Empty: none is written, and the manifests go where they are applied.
	Namespace string
	// Connection is the name of the OmniConnection. Required.
	Connection string
	// Adopt makes an OmniCluster that takes its cluster over when somebody says so: spec.adopt is set, changePolicy Observe writes
	// nothing until then, and deletePolicy.orphan keeps the cluster if the object is deleted.
	Adopt bool
}

// Objects are the objects of one cluster.
type Objects struct {
	// ConfigMaps hold the contents that cannot be inline blocks, one key each.
	ConfigMaps []corev1.ConfigMap
	// Cluster is never nil.
	Cluster *v1alpha1.OmniCluster
	// ControlPlane is never nil.
	ControlPlane *v1alpha1.OmniControlPlane
	// Workers are in the order of the template.
	Workers []v1alpha1.OmniWorkers
	// Machines are those that say something about their machine, in the order of the template.
	Machines []v1alpha1.OmniMachine
}

// Input is what template.Assemble takes.
func (o *Objects) Input() template.Input {
	return template.Input{
		Cluster: o.Cluster, ControlPlanes: []v1alpha1.OmniControlPlane{*o.ControlPlane}, Workers: o.Workers, Machines: o.Machines,
	}
}

// Value is the template.ValueFunc that reads the objects' own ConfigMaps.
func (o *Objects) Value(source v1alpha1.ValueSource) (string, error) {
	if source.ConfigMapKeyRef == nil {
		return "", errors.New("only ConfigMaps are exported")
	}

	for _, configMap := range o.ConfigMaps {
		if value, found := configMap.Data[source.ConfigMapKeyRef.Key]; found && configMap.Name == source.ConfigMapKeyRef.Name {
			return value, nil
		}
	}

	return "", fmt.Errorf("no ConfigMap %q was exported", source.ConfigMapKeyRef.Name)
}

// Manifests are all objects, in the order in which they are written. The OmniCluster is the last: a tool applies
// one after the other, and a controller that saw the cluster without its other documents would take labels and
// settings of machines off that the next document puts back.
func (o *Objects) Manifests() []runtime.Object {
	var all []runtime.Object

	for i := range o.ConfigMaps {
		all = append(all, &o.ConfigMaps[i])
	}

	all = append(all, o.ControlPlane)

	for i := range o.Workers {
		all = append(all, &o.Workers[i])
	}

	for i := range o.Machines {
		all = append(all, &o.Machines[i])
	}

	return append(all, o.Cluster)
}

// ConnectionOptions describe an OmniConnection.
type ConnectionOptions struct {
	// Name and Namespace of the object.
	Name, Namespace string
	// Endpoint is the URL of the Omni API.
	Endpoint string
	// CABundle is PEM; empty: the system's roots.
	CABundle []byte
	// InsecureSkipTLSVerify accepts any certificate.
	InsecureSkipTLSVerify bool
	// Secret is the name of the Secret that holds the key, which is not exported.
	Secret string
}

// Connection is the OmniConnection to an Omni.
func Connection(options ConnectionOptions) *v1alpha1.OmniConnection {
	return &v1alpha1.OmniConnection{
		TypeMeta:   typeOf("OmniConnection"),
		ObjectMeta: metav1.ObjectMeta{Name: options.Name, Namespace: options.Namespace},
		Spec: v1alpha1.OmniConnectionSpec{
			Endpoint:              options.Endpoint,
			Auth:                  v1alpha1.OmniConnectionAuth{ServiceAccountSecretRef: v1alpha1.SecretKeyReference{Name: options.Secret}},
			CABundle:              options.CABundle,
			InsecureSkipTLSVerify: options.InsecureSkipTLSVerify,
		},
	}
}

func typeOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind}
}

const (
	// nameAnnotation is where Omni keeps the name of a patch.
	nameAnnotation = "name"
	// contentKey is the key of an exported content in its ConfigMap.
	contentKey = "content"
	// maxConfigMap is the largest content of a ConfigMap, in bytes: the API's limit is 1 MiB with all else.
	maxConfigMap = 1<<20 - 16<<10
)

func (m *maker) patches(sections []patchSection) ([]v1alpha1.Patch, error) {
	var patches []v1alpha1.Patch

	for i, section := range sections {
		id := section.IDOverride
		if id == "" {
			id = section.Name
		}

		if section.Inline == nil {
			return nil, fmt.Errorf("patch %q has no content", id)
		}

		patch := v1alpha1.Patch{
			Name: section.Name, IDOverride: section.IDOverride, Labels: section.Labels, Annotations: unmarked(section.Annotations),
		}

		// The ID is given, so the name is only the annotation; written as such it is what people look for.
		if name, found := patch.Annotations[nameAnnotation]; found && patch.Name == "" && patch.IDOverride != "" {
			patch.Name = name

			if patch.Annotations = maps.Clone(patch.Annotations); len(patch.Annotations) == 1 {
				patch.Annotations = nil // an empty map would be written
			}

			delete(patch.Annotations, nameAnnotation)
		}

		if blocks, ok := inlineBlocks(*section.Inline); ok && len(blocks) == 1 {
			patch.Inline = &blocks[0]
		} else {
			// An ID is unique; a name is only together with its place.
			identity := "patch " + section.IDOverride
			if section.IDOverride == "" {
				identity = fmt.Sprintf("patch %s, %d of content %d", section.Name, i, len(m.objects.ConfigMaps))
			}

			source, err := m.configMap(identity, id, *section.Inline)
			if err != nil {
				return nil, fmt.Errorf("patch %q: %w", id, err)
			}

			patch.ValueFrom = source
		}

		patches = append(patches, patch)
	}

	return patches, nil
}

func (m *maker) manifests(sections []manifestDocument) ([]v1alpha1.Manifest, error) {
	var groups []v1alpha1.Manifest

	for _, section := range sections {
		if section.Inline == nil {
			return nil, fmt.Errorf("manifest %q has no content", section.Name)
		}

		group := v1alpha1.Manifest{
			Name: section.Name, Mode: v1alpha1.ManifestMode(section.Mode), Labels: section.Labels, Annotations: unmarked(section.Annotations),
		}

		if blocks, ok := inlineBlocks(*section.Inline); ok {
			group.Inline = blocks
		} else {
			source, err := m.configMap("manifest "+section.Name, section.Name, *section.Inline)
			if err != nil {
				return nil, fmt.Errorf("manifest %q: %w", section.Name, err)
			}

			group.ValueFrom = source
		}

		groups = append(groups, group)
	}

	return groups, nil
}

// configMap keeps a content byte for byte. The identity tells contents of one readable name apart.
func (m *maker) configMap(identity, readable, content string) (*v1alpha1.ValueSource, error) {
	switch {
	case !utf8.ValidString(content):
		return nil, errors.New("its content is not valid UTF-8, which no manifest can carry: replace it in Omni first")
	case len(content) > maxConfigMap:
		return nil, fmt.Errorf("its content has %d bytes, and a ConfigMap takes %d: split it in Omni first", len(content), maxConfigMap)
	}

	// The hash stands for cluster and content's place; the readable part is for people.
	place := hashedName(m.remote + "/" + identity)
	name := ObjectName(strings.Trim(m.cluster+"-"+readable, "-")) + place[len(place)-hashLength-1:]

	m.objects.ConfigMaps = append(m.objects.ConfigMaps, corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: m.meta(name),
		Data:       map[string]string{contentKey: content},
	})

	return &v1alpha1.ValueSource{ConfigMapKeyRef: &v1alpha1.KeyReference{Name: name, Key: contentKey}}, nil
}

func healthchecksOf(ctx context.Context, sections []healthcheckSection) ([]v1alpha1.Healthcheck, error) {
	var checks []v1alpha1.Healthcheck

	for _, section := range sections {
		id := section.IDOverride
		if id == "" {
			id = section.Name
		}

		if section.Job == nil {
			return nil, fmt.Errorf("healthcheck %q has no job: give it one in Omni, or remove it there", id)
		}

		job, err := jobOf(ctx, *section.Job)
		if err != nil {
			return nil, fmt.Errorf("healthcheck %q: its job cannot be an inline object: %w: rewrite it in Omni as one plain YAML object", id, err)
		}

		check := v1alpha1.Healthcheck{
			Name: section.Name, IDOverride: section.IDOverride, Labels: section.Labels, Annotations: unmarked(section.Annotations), Job: job,
		}
		if section.Interval > 0 {
			check.Interval = durationOf(section.Interval)
		}

		checks = append(checks, check)
	}

	return checks, nil
}

// durationOf writes a duration as people do: 1h, not 1h0m0s.
func durationOf(duration time.Duration) v1alpha1.Duration {
	text := duration.String()

	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}

	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}

	return v1alpha1.Duration(text)
}

func (m *maker) makeMachine(document *machineDocument) error {
	patches, err := m.patches(document.Patches)
	if err != nil {
		return err
	}

	if len(patches) == 0 && len(document.Labels) == 0 && len(unmarked(document.Annotations)) == 0 && !document.Locked &&
		document.Install.Disk == "" && document.Install.DiskSelector == "" && document.SystemExtensions == nil && document.KernelArgs == nil {
		return nil
	}

	name := ObjectName(document.Name)
	machine := v1alpha1.OmniMachine{
		TypeMeta:   typeOf("OmniMachine"),
		ObjectMeta: m.meta(name),
		Spec: v1alpha1.OmniMachineSpec{
			ClusterRef: v1alpha1.LocalObjectReference{Name: m.cluster},
			Locked:     document.Locked,
		},
	}

	if install := (v1alpha1.MachineInstall{Disk: document.Install.Disk, DiskSelector: document.Install.DiskSelector}); install != (v1alpha1.MachineInstall{}) {
		machine.Spec.Install = &install
	}

	machine.Spec.Labels, machine.Spec.Annotations = document.Labels, unmarked(document.Annotations)
	machine.Spec.Patches = patches
	machine.Spec.SystemExtensions, machine.Spec.KernelArgs = document.SystemExtensions, document.KernelArgs

	if name != document.Name {
		machine.Spec.MachineID = document.Name
	}

	m.objects.Machines = append(m.objects.Machines, machine)

	return nil
}
