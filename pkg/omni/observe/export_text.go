package observe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"go.yaml.in/yaml/v3"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// complete puts the exact parts into the library's text.
func (e *exactParts) complete(text []byte) ([]byte, error) {
	var completed bytes.Buffer

	decoder, encoder := yaml.NewDecoder(bytes.NewReader(text)), yaml.NewEncoder(&completed)

	for {
		var document yaml.Node

		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}

		if err == nil {
			err = e.completeDocument(document.Content[0])
		}

		if err == nil {
			err = encoder.Encode(&document)
		}

		if err != nil {
			return nil, err
		}
	}

	if err := encoder.Close(); err != nil {
		return nil, err
	}

	return completed.Bytes(), nil
}

func (e *exactParts) completeDocument(document *yaml.Node) error {
	if err := putContents(field(document, "patches"), "inline", e.patches); err != nil {
		return err
	}

	switch kind := field(document, "kind"); {
	case kind == nil:
		return errors.New("a document has no kind")
	case kind.Value == "Cluster":
		return e.completeCluster(document)
	case kind.Value == "ControlPlane":
		return e.completeSet(document, "control-planes")
	case kind.Value == "Workers":
		name := "workers"
		if given := field(document, "name"); given != nil {
			name = given.Value
		}

		put(document, "name", textNode(name))

		return e.completeSet(document, name)
	case kind.Value == "Machine":
		machine := field(document, "name").Value
		if args, managed := e.kernelArgs[machine]; managed {
			put(document, "kernelArgs", listNode(args))
		}

		if disk, chosen := e.disks[machine]; chosen {
			section := &yaml.Node{Kind: yaml.MappingNode}
			for name, value := range disk.Fields() {
				put(section, name, textNode(value))
			}

			put(document, "install", section)
		}
	}

	return nil
}

func (e *exactParts) completeCluster(document *yaml.Node) error {
	kubernetes := field(document, "kubernetes")

	if err := putContents(field(kubernetes, "healthchecks"), "job", e.jobs); err != nil {
		return err
	}

	if backup := field(field(document, "features"), "backupConfiguration"); backup != nil && !e.backups {
		put(backup, "interval", textNode("0s"))
	}

	putFeature(document, "enableNodeAuditSkip", e.features.GetEnableNodeAuditSkip())
	putFeature(document, "disablePublicDiscoveryService", omni.DisablesPublicDiscovery(e.features))

	groups := field(kubernetes, "manifests")
	if groups == nil {
		return nil
	}

	if len(groups.Content) != len(e.manifests) {
		return omni.ErrChangedMeanwhile
	}

	for i, group := range groups.Content {
		if name := field(group, "name"); name == nil || name.Value != e.manifests[i].name {
			return omni.ErrChangedMeanwhile
		}

		put(group, "inline", textNode(e.manifests[i].content))
	}

	return nil
}

// putFeature sets a feature that is on: a template without it leaves it alone.
func putFeature(document *yaml.Node, key string, on bool) {
	if !on {
		return
	}

	features := field(document, "features")
	if features == nil {
		features = &yaml.Node{Kind: yaml.MappingNode}
		put(document, "features", features)
	}

	put(features, key, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
}

// putContents sets the content of each entry from its resource, whose ID is the entry's idOverride.
func putContents(entries *yaml.Node, key string, contents map[string]string) error {
	if entries == nil {
		return nil
	}

	for _, entry := range entries.Content {
		id := field(entry, "idOverride")
		if id == nil {
			return omni.ErrChangedMeanwhile
		}

		content, found := contents[id.Value]
		if !found {
			return omni.ErrChangedMeanwhile
		}

		put(entry, key, textNode(content))
	}

	return nil
}

// completeSet writes the strategies of a set as Omni has them. A control plane's template has no update and delete
// strategy: the library refuses strategies with a configuration, and the others show up as inexpressible.
func (e *exactParts) completeSet(document *yaml.Node, name string) error {
	set, found := e.sets[name]
	if !found {
		return fmt.Errorf("machine set %q: %w", name, omni.ErrChangedMeanwhile)
	}

	spec := set.TypedSpec().Value

	putStrategy(document, "upgradeStrategy", spec.GetUpgradeStrategy(), specs.MachineSetSpec_Unset, spec.GetUpgradeStrategyConfig())

	if field(document, "kind").Value == "Workers" {
		putStrategy(document, "updateStrategy", spec.GetUpdateStrategy(), specs.MachineSetSpec_Rolling, spec.GetUpdateStrategyConfig())
		putStrategy(document, "deleteStrategy", spec.GetDeleteStrategy(), specs.MachineSetSpec_Unset, spec.GetDeleteStrategyConfig())
	}

	return nil
}

func putStrategy(
	document *yaml.Node, key string, strategy, byDefault specs.MachineSetSpec_UpdateStrategy, config *specs.MachineSetSpec_UpdateStrategyConfig,
) {
	if strategy == byDefault && config == nil {
		return
	}

	section := &yaml.Node{Kind: yaml.MappingNode}
	put(section, "type", textNode(strategy.String()))

	if rolling := config.GetRolling(); rolling != nil && rolling.GetMaxParallelism() > 0 {
		bound := &yaml.Node{Kind: yaml.MappingNode}
		put(bound, "maxParallelism", &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatUint(uint64(rolling.GetMaxParallelism()), 10)})
		put(section, "rolling", bound)
	}

	put(document, key, section)
}

func field(mapping *yaml.Node, key string) *yaml.Node {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return nil
	}

	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}

	return nil
}

func put(mapping *yaml.Node, key string, value *yaml.Node) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			mapping.Content[i+1] = value

			return
		}
	}

	mapping.Content = append(mapping.Content, textNode(key), value)
}

// textNode returns a quoted node with escapes, which is exact for every valid UTF-8 text.
func textNode(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: text}
}

func listNode(texts []string) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for _, text := range texts {
		list.Content = append(list.Content, textNode(text))
	}

	return list
}
