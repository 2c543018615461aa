package export

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"go.yaml.in/yaml/v3"
)

// The documents of a template, as the Omni client 1.9 exports them. Contents are texts; a mapping in the place
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
		EnableWorkloadProxy         bool `yaml:"enableWorkloadProxy"`
		UseEmbeddedDiscoveryService bool `yaml:"useEmbeddedDiscoveryService"`
		DiskEncryption              bool `yaml:"diskEncryption"`
		BackupConfiguration         *struct {
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
		Disk string `yaml:"disk"`
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
