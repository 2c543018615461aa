package template

import "go.yaml.in/yaml/v3"

// The documents of an Omni cluster template. The key names are those of the template format of Omni 1.9,
// two features of 1.10, and the disk selector of 1.11;
// the order of the fields is the order in the text. Omni's own models are internal to its client, and hold
// file references, which have no place here.

type clusterDocument struct {
	Kind             string            `yaml:"kind"`
	Name             string            `yaml:"name"`
	Labels           map[string]string `yaml:"labels,omitempty"`
	Annotations      map[string]string `yaml:"annotations,omitempty"`
	Kubernetes       kubernetesSection `yaml:"kubernetes"`
	Talos            versionSection    `yaml:"talos"`
	Features         featuresSection   `yaml:"features,omitempty"`
	Patches          []patchEntry      `yaml:"patches,omitempty"`
	SystemExtensions optionalList      `yaml:"systemExtensions,omitempty"`
	KernelArgs       optionalList      `yaml:"kernelArgs,omitempty"`
}

type kubernetesSection struct {
	Version      string             `yaml:"version"`
	Manifests    []manifestEntry    `yaml:"manifests,omitempty"`
	Healthchecks []healthcheckEntry `yaml:"healthchecks,omitempty"`
}

type versionSection struct {
	Version string `yaml:"version"`
}

type featuresSection struct {
	EnableWorkloadProxy           bool           `yaml:"enableWorkloadProxy,omitempty"`
	UseEmbeddedDiscoveryService   bool           `yaml:"useEmbeddedDiscoveryService,omitempty"`
	DiskEncryption                bool           `yaml:"diskEncryption,omitempty"`
	EnableNodeAuditSkip           *bool          `yaml:"enableNodeAuditSkip,omitempty"`
	DisablePublicDiscoveryService *bool          `yaml:"disablePublicDiscoveryService,omitempty"`
	BackupConfiguration           *backupSection `yaml:"backupConfiguration,omitempty"`
}

type backupSection struct {
	Interval string `yaml:"interval"`
}

type manifestEntry struct {
	Name        string            `yaml:"name"`
	Mode        string            `yaml:"mode"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
	Inline      literal           `yaml:"inline"`
}

type healthcheckEntry struct {
	Name        string            `yaml:"name,omitempty"`
	IDOverride  string            `yaml:"idOverride,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
	Interval    string            `yaml:"interval,omitempty"`
	Job         literal           `yaml:"job"`
}

type patchEntry struct {
	Name        string            `yaml:"name,omitempty"`
	IDOverride  string            `yaml:"idOverride,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
	Inline      literal           `yaml:"inline"`
}

// machineSetDocument is a ControlPlane (which has no name) or Workers document.
type machineSetDocument struct {
	Kind             string               `yaml:"kind"`
	Name             string               `yaml:"name,omitempty"`
	Labels           map[string]string    `yaml:"labels,omitempty"`
	Annotations      map[string]string    `yaml:"annotations,omitempty"`
	BootstrapSpec    *bootstrapSection    `yaml:"bootstrapSpec,omitempty"`
	Machines         []string             `yaml:"machines,omitempty"`
	MachineClass     *machineClassSection `yaml:"machineClass,omitempty"`
	UpdateStrategy   *strategySection     `yaml:"updateStrategy,omitempty"`
	UpgradeStrategy  *strategySection     `yaml:"upgradeStrategy,omitempty"`
	DeleteStrategy   *strategySection     `yaml:"deleteStrategy,omitempty"`
	Patches          []patchEntry         `yaml:"patches,omitempty"`
	SystemExtensions optionalList         `yaml:"systemExtensions,omitempty"`
	KernelArgs       optionalList         `yaml:"kernelArgs,omitempty"`
}

type bootstrapSection struct {
	ClusterUUID string `yaml:"clusterUUID"`
	Snapshot    string `yaml:"snapshot"`
}

type machineClassSection struct {
	Name string `yaml:"name"`
	// Size is an int32 or the word unlimited.
	Size any `yaml:"size"`
}

type strategySection struct {
	Type    string          `yaml:"type,omitempty"`
	Rolling *rollingSection `yaml:"rolling,omitempty"`
}

type rollingSection struct {
	MaxParallelism int32 `yaml:"maxParallelism"`
}

type machineDocument struct {
	Kind             string            `yaml:"kind"`
	Name             string            `yaml:"name"`
	Labels           map[string]string `yaml:"labels,omitempty"`
	Annotations      map[string]string `yaml:"annotations,omitempty"`
	Locked           bool              `yaml:"locked,omitempty"`
	Install          *installSection   `yaml:"install,omitempty"`
	Patches          []patchEntry      `yaml:"patches,omitempty"`
	SystemExtensions optionalList      `yaml:"systemExtensions,omitempty"`
	KernelArgs       optionalList      `yaml:"kernelArgs,omitempty"`
}

type installSection struct {
	Disk         string `yaml:"disk,omitempty"`
	DiskSelector string `yaml:"diskSelector,omitempty"`
}

// optionalList tells unset (nil, left out: keep what the wider level says) from empty ([]: remove all).
type optionalList []string

// IsZero makes omitempty leave out the unset list only.
func (l optionalList) IsZero() bool { return l == nil }

// MarshalYAML writes the list as a plain sequence.
func (l optionalList) MarshalYAML() (any, error) { return []string(l), nil }

var (
	_ yaml.IsZeroer  = optionalList(nil)
	_ yaml.Marshaler = optionalList(nil)
	_ yaml.Marshaler = literal("")
)
