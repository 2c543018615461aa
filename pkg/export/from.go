package export

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// FromTemplate makes the objects that render to a template which is, for Omni, the same as the given one. The
// owner's mark on the Cluster is left out: whoever applies the objects gets a mark of his own. A Machine document
// that says nothing but the machine's ID gets no object: it would only take off a lock that is set in Omni later.
//
// Names of objects are derived from Omni's names and never depend on anything else: see ObjectName.
//
// It does not check what Omni checks. Errors name the part of the template that the objects cannot express.
func FromTemplate(ctx context.Context, text []byte, options ObjectOptions) (*Objects, error) {
	parsed, err := parseTemplate(text)
	if err != nil {
		return nil, err
	}

	m := &maker{options: options, remote: parsed.cluster.Name, cluster: ObjectName(parsed.cluster.Name)}

	if err := m.makeCluster(ctx, parsed.cluster); err != nil {
		return nil, fmt.Errorf("cluster %q: %w", m.remote, err)
	}

	if err := m.makeControlPlane(parsed.controlPlane); err != nil {
		return nil, fmt.Errorf("control plane of cluster %q: %w", m.remote, err)
	}

	for i := range parsed.workers {
		if err := m.makeWorkers(&parsed.workers[i]); err != nil {
			return nil, fmt.Errorf("worker set %q of cluster %q: %w", parsed.workers[i].Name, m.remote, err)
		}
	}

	for i := range parsed.machines {
		if err := m.makeMachine(&parsed.machines[i]); err != nil {
			return nil, fmt.Errorf("machine %q of cluster %q: %w", parsed.machines[i].Name, m.remote, err)
		}
	}

	return &m.objects, nil
}

// maker makes the objects of one cluster.
type maker struct {
	options ObjectOptions
	remote  string // the cluster's name in Omni
	cluster string // the name of the OmniCluster
	objects Objects
}

func (m *maker) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: m.options.Namespace}
}

func (m *maker) makeCluster(ctx context.Context, document *clusterDocument) error {
	if err := checkRemoteName(m.remote); err != nil {
		return err
	}

	patches, err := m.patches(document.Patches)
	if err != nil {
		return err
	}

	groups, err := m.manifests(document.Kubernetes.Manifests)
	if err != nil {
		return err
	}

	healthchecks, err := healthchecksOf(ctx, document.Kubernetes.Healthchecks)
	if err != nil {
		return err
	}

	cluster := &v1alpha1.OmniCluster{
		TypeMeta:   typeOf("OmniCluster"),
		ObjectMeta: m.meta(m.cluster),
		Spec: v1alpha1.OmniClusterSpec{
			ConnectionRef: v1alpha1.LocalObjectReference{Name: m.options.Connection},
			Adopt:         m.options.Adopt,
			Labels:        document.Labels,
			Annotations:   unmarked(document.Annotations),
			Kubernetes: v1alpha1.OmniClusterKubernetes{
				Version: document.Kubernetes.Version, Manifests: groups, Healthchecks: healthchecks,
			},
			Talos: v1alpha1.OmniClusterTalos{Version: document.Talos.Version},
			Features: v1alpha1.OmniClusterFeatures{
				EnableWorkloadProxy:           document.Features.EnableWorkloadProxy,
				UseEmbeddedDiscoveryService:   document.Features.UseEmbeddedDiscoveryService,
				DiskEncryption:                document.Features.DiskEncryption,
				EnableNodeAuditSkip:           document.Features.EnableNodeAuditSkip,
				DisablePublicDiscoveryService: document.Features.DisablePublicDiscoveryService,
			},
			Patches:          patches,
			SystemExtensions: document.SystemExtensions,
			KernelArgs:       document.KernelArgs,
		},
	}

	if m.cluster != m.remote {
		cluster.Spec.ClusterName = m.remote
	}

	if m.options.Adopt {
		cluster.Spec.ChangePolicy, cluster.Spec.DeletePolicy.Orphan = v1alpha1.ChangePolicyObserve, true
	}

	if backup := document.Features.BackupConfiguration; backup != nil && backup.Interval > 0 {
		cluster.Spec.Features.BackupConfiguration = &v1alpha1.BackupConfiguration{Interval: durationOf(backup.Interval)}
	}

	m.objects.Cluster = cluster

	return nil
}

// unmarked takes the owner's mark off, and everything else under our prefix, which the API refuses.
func unmarked(annotations map[string]string) map[string]string {
	kept := maps.Clone(annotations)

	maps.DeleteFunc(kept, func(key, _ string) bool { return strings.HasPrefix(key, v1alpha1.GroupName+"/") })

	if len(kept) == 0 {
		return nil
	}

	return kept
}

// checkRemoteName refuses a name in Omni that is longer than the API takes.
func checkRemoteName(name string) error {
	if len(name) > maxName {
		return fmt.Errorf("its name has %d characters, and at most %d can be taken over", len(name), maxName)
	}

	return nil
}

func (m *maker) makeControlPlane(document *machineSetDocument) error {
	configuration, machines, err := m.machineSet(document)
	if err != nil {
		return err
	}

	controlPlane := &v1alpha1.OmniControlPlane{
		TypeMeta:   typeOf("OmniControlPlane"),
		ObjectMeta: m.meta(ObjectName(m.remote + "-" + v1alpha1.ControlPlaneSetName)),
		Spec: v1alpha1.OmniControlPlaneSpec{
			ClusterRef:           v1alpha1.LocalObjectReference{Name: m.cluster},
			MachineSetMachines:   machines,
			MachineConfiguration: configuration,
			UpgradeStrategy:      strategyOf(document.UpgradeStrategy, v1alpha1.StrategyUnset),
		},
	}

	if document.UpdateStrategy != nil || document.DeleteStrategy != nil {
		return fmt.Errorf("updateStrategy and deleteStrategy have no place in a control plane")
	}

	if bootstrap := document.BootstrapSpec; bootstrap != nil {
		controlPlane.Spec.BootstrapSpec = &v1alpha1.BootstrapSpec{ClusterUUID: bootstrap.ClusterUUID, Snapshot: bootstrap.Snapshot}
	}

	m.objects.ControlPlane = controlPlane

	return nil
}

// defaultWorkers is the name that Omni gives a worker set without one.
const defaultWorkers = "workers"

func (m *maker) makeWorkers(document *machineSetDocument) error {
	configuration, machines, err := m.machineSet(document)
	if err != nil {
		return err
	}

	if document.BootstrapSpec != nil {
		return fmt.Errorf("bootstrapSpec has no place in a worker set")
	}

	name := document.Name
	if name == "" {
		name = defaultWorkers
	}

	if err := checkRemoteName(name); err != nil {
		return err
	}

	m.objects.Workers = append(m.objects.Workers, v1alpha1.OmniWorkers{
		TypeMeta:   typeOf("OmniWorkers"),
		ObjectMeta: m.meta(ObjectName(m.remote + "-" + name)),
		Spec: v1alpha1.OmniWorkersSpec{
			ClusterRef:           v1alpha1.LocalObjectReference{Name: m.cluster},
			WorkerSetName:        name,
			MachineSetMachines:   machines,
			MachineConfiguration: configuration,
			UpdateStrategy:       strategyOf(document.UpdateStrategy, v1alpha1.StrategyRolling),
			UpgradeStrategy:      strategyOf(document.UpgradeStrategy, v1alpha1.StrategyUnset),
			DeleteStrategy:       strategyOf(document.DeleteStrategy, v1alpha1.StrategyUnset),
		},
	})

	return nil
}

func (m *maker) machineSet(document *machineSetDocument) (
	configuration v1alpha1.MachineConfiguration, machines v1alpha1.MachineSetMachines, err error,
) {
	patches, err := m.patches(document.Patches)
	if err != nil {
		return configuration, machines, err
	}

	configuration = v1alpha1.MachineConfiguration{
		Labels: document.Labels, Annotations: unmarked(document.Annotations), Patches: patches,
		SystemExtensions: document.SystemExtensions, KernelArgs: document.KernelArgs,
	}
	machines.Machines = document.Machines

	if class := document.MachineClass; class != nil {
		size, err := sizeOf(class.Size)
		if err != nil {
			return configuration, machines, err
		}

		machines.MachineClass = &v1alpha1.MachineClass{Name: class.Name, Size: size}
	}

	return configuration, machines, nil
}

// sizeOf reads a size as a template spells it.
func sizeOf(text string) (*intstr.IntOrString, error) {
	spelled := intstr.FromString(text)

	count, unlimited, err := (&v1alpha1.MachineClass{Size: &spelled}).Count()
	if err != nil {
		return nil, fmt.Errorf("machineClass: %w", err)
	}

	size := intstr.FromInt32(count)
	if unlimited {
		size = intstr.FromString(v1alpha1.UnlimitedSize)
	}

	return &size, nil
}

// strategyOf makes the type explicit, which a template may leave to Omni's default.
func strategyOf(section *strategySection, byDefault v1alpha1.StrategyType) *v1alpha1.Strategy {
	if section == nil {
		return nil
	}

	strategy := &v1alpha1.Strategy{Type: byDefault}
	if section.Type != "" {
		strategy.Type = v1alpha1.StrategyType(section.Type)
	}

	if section.Rolling != nil && section.Rolling.MaxParallelism > 0 {
		strategy.Rolling = &v1alpha1.RollingStrategy{MaxParallelism: section.Rolling.MaxParallelism}
	}

	return strategy
}

// The documents of a template, as the Omni client 1.9 exports them, with two features of 1.10. Contents are texts; a mapping in the place
// of a text, a file reference and every unknown key are errors, because they would be lost.

type clusterDocument struct {
	Kind        string            `yaml:"kind"`
	Name        string            `yaml:"name"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
	Kubernetes  struct {
		Version      string               `yaml:"version"`
		Manifests    []manifestDocument   `yaml:"manifests"`
		Healthchecks []healthcheckSection `yaml:"healthchecks"`
	} `yaml:"kubernetes"`
	Talos struct {
		Version string `yaml:"version"`
	} `yaml:"talos"`
	Features struct {
		EnableWorkloadProxy           bool  `yaml:"enableWorkloadProxy"`
		UseEmbeddedDiscoveryService   bool  `yaml:"useEmbeddedDiscoveryService"`
		DiskEncryption                bool  `yaml:"diskEncryption"`
		EnableNodeAuditSkip           *bool `yaml:"enableNodeAuditSkip"`
		DisablePublicDiscoveryService *bool `yaml:"disablePublicDiscoveryService"`
		BackupConfiguration           *struct {
			Interval time.Duration `yaml:"interval"`
		} `yaml:"backupConfiguration"`
	} `yaml:"features"`
	Patches          []patchSection `yaml:"patches"`
	SystemExtensions []string       `yaml:"systemExtensions"`
	KernelArgs       []string       `yaml:"kernelArgs"`
}

type manifestDocument struct {
	Name        string            `yaml:"name"`
	Mode        string            `yaml:"mode"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
	Inline      *string           `yaml:"inline"`
}

type healthcheckSection struct {
	Name        string            `yaml:"name"`
	IDOverride  string            `yaml:"idOverride"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
	Interval    time.Duration     `yaml:"interval"`
	Job         *string           `yaml:"job"`
}

type patchSection struct {
	Name        string            `yaml:"name"`
	IDOverride  string            `yaml:"idOverride"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
	Inline      *string           `yaml:"inline"`
}

// machineSetDocument is a ControlPlane or Workers document.
type machineSetDocument struct {
	Kind          string            `yaml:"kind"`
	Name          string            `yaml:"name"`
	Labels        map[string]string `yaml:"labels"`
	Annotations   map[string]string `yaml:"annotations"`
	BootstrapSpec *struct {
		ClusterUUID string `yaml:"clusterUUID"`
		Snapshot    string `yaml:"snapshot"`
	} `yaml:"bootstrapSpec"`
	Machines     []string `yaml:"machines"`
	MachineClass *struct {
		Name string `yaml:"name"`
		Size string `yaml:"size"`
	} `yaml:"machineClass"`
	UpdateStrategy   *strategySection `yaml:"updateStrategy"`
	UpgradeStrategy  *strategySection `yaml:"upgradeStrategy"`
	DeleteStrategy   *strategySection `yaml:"deleteStrategy"`
	Patches          []patchSection   `yaml:"patches"`
	SystemExtensions []string         `yaml:"systemExtensions"`
	KernelArgs       []string         `yaml:"kernelArgs"`
}

type strategySection struct {
	Type    string `yaml:"type"`
	Rolling *struct {
		MaxParallelism int32 `yaml:"maxParallelism"`
	} `yaml:"rolling"`
}

type machineDocument struct {
	Kind        string            `yaml:"kind"`
	Name        string            `yaml:"name"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
	Locked      bool              `yaml:"locked"`
	Install     struct {
		Disk         string `yaml:"disk"`
		DiskSelector string `yaml:"diskSelector"`
	} `yaml:"install"`
	Patches          []patchSection `yaml:"patches"`
	SystemExtensions []string       `yaml:"systemExtensions"`
	KernelArgs       []string       `yaml:"kernelArgs"`
}

// documents are those of one template.
type documents struct {
	cluster      *clusterDocument
	controlPlane *machineSetDocument
	workers      []machineSetDocument
	machines     []machineDocument
}

// parseTemplate reads a template. Each kind is decoded strictly.
func parseTemplate(text []byte) (*documents, error) {
	var parsed documents

	decoder := yaml.NewDecoder(bytes.NewReader(text))

	for index := 1; ; index++ {
		var node yaml.Node

		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			break
		}

		if err == nil {
			err = parsed.add(&node)
		}

		if err != nil {
			return nil, fmt.Errorf("document %d of the template: %w", index, err)
		}
	}

	if parsed.cluster == nil || parsed.controlPlane == nil {
		return nil, errors.New("the template has no Cluster or no ControlPlane")
	}

	return &parsed, nil
}

func (d *documents) add(node *yaml.Node) error {
	var header struct {
		Kind string `yaml:"kind"`
	}

	if err := node.Decode(&header); err != nil {
		return err
	}

	switch header.Kind {
	case "Cluster":
		if d.cluster != nil {
			return errors.New("a second Cluster")
		}

		d.cluster = &clusterDocument{}

		return decodeStrictly(node, d.cluster)
	case "ControlPlane":
		if d.controlPlane != nil {
			return errors.New("a second ControlPlane")
		}

		d.controlPlane = &machineSetDocument{}

		return decodeStrictly(node, d.controlPlane)
	case "Workers":
		d.workers = append(d.workers, machineSetDocument{})

		return decodeStrictly(node, &d.workers[len(d.workers)-1])
	case "Machine":
		d.machines = append(d.machines, machineDocument{})

		return decodeStrictly(node, &d.machines[len(d.machines)-1])
	default:
		return fmt.Errorf("unknown kind %q", header.Kind)
	}
}

// decodeStrictly refuses keys that the target does not have. Only a Decoder can be strict, so the document is
// written once more.
func decodeStrictly(node *yaml.Node, into any) error {
	text, err := yaml.Marshal(node)
	if err != nil {
		return err
	}

	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)

	return decoder.Decode(into)
}

const (
	// maxName is the largest length of a name that is kept as it is: that of a DNS label, which suits every kind.
	maxName = 63
	// hashLength is the number of hexadecimal digits that tell changed names apart.
	hashLength = 8
)

// dnsName is a name that Kubernetes takes for every kind of ours.
const dnsName = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`

// ObjectName is the name of a Kubernetes object for something that Omni calls id: the ID itself where Kubernetes
// allows it, else a readable form of it with a hash of the ID behind, so that two IDs never get one name. The
// same ID always gets the same name.
func ObjectName(id string) string {
	if len(id) <= maxName && regexp.MustCompile(dnsName).MatchString(id) {
		return id
	}

	return hashedName(id)
}

// hashedName always carries the hash.
func hashedName(id string) string {
	sum := sha256.Sum256([]byte(id))
	readable := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(id), "-")

	if len(readable) > maxName-hashLength-1 {
		readable = readable[:maxName-hashLength-1]
	}

	readable = strings.Trim(readable, "-")
	suffix := hex.EncodeToString(sum[:])[:hashLength]

	if readable == "" {
		readable = "omni"
	}

	return readable + "-" + suffix
}
