package plan

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"go.yaml.in/yaml/v3"

	ourtemplate "omni.texashpc.com/omni-cluster-operator/pkg/template"
)

// sections are keys of a document, and in each the keys of what it holds.
type sections map[string][]string

// unknownKeys are those that Omni's templates have since 1.10 and 1.11, and that the library refuses.
func unknownKeys() sections {
	return sections{"features": {"enableNodeAuditSkip", "disablePublicDiscoveryService"}, "install": {"diskSelector"}}
}

// heads is what we read of a template ourselves.
type heads struct {
	described map[string]bool    // the machines that have a Machine document of their own: only there can a template set a lock
	installs  map[string]install // by machine, of those that choose a disk
	features  features
	backup    bool // whether the Cluster document says anything about backups
}

// splitHeads reads the heads of a template, and returns it without the keys that the library refuses.
func splitHeads(document []byte) ([]byte, heads, error) {
	found, err := readHeads(document)
	if err != nil || found.features == (features{}) && found.checkServed() == nil {
		return document, found, err
	}

	return without(document, unknownKeys()), found, nil
}

func readHeads(document []byte) (heads, error) {
	found := heads{described: map[string]bool{}, installs: map[string]install{}}
	decoder := yaml.NewDecoder(bytes.NewReader(document))

	for {
		var head struct {
			Kind     string `yaml:"kind"`
			Name     string `yaml:"name"`
			Features struct {
				Own    features  `yaml:",inline"`
				Backup yaml.Node `yaml:"backupConfiguration"`
			} `yaml:"features"`
			Install install `yaml:"install"`
		}

		switch err := decoder.Decode(&head); {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return found, err
		}

		switch head.Kind {
		case "Machine":
			found.described[head.Name] = true

			if head.Install != (install{}) {
				found.installs[head.Name] = head.Install
			}
		case "Cluster":
			found.features, found.backup = head.Features.Own, !head.Features.Backup.IsZero()
		}
	}
}

// without returns a template without some keys. A section that has none left stays.
func without(document []byte, drop sections) []byte {
	bare, _ := ourtemplate.Rewrite(document, func(one *yaml.Node) (keep, changed bool) {
		for name, keys := range drop {
			changed = dropKeys(ourtemplate.Member(one, name), keys) || changed
		}

		return true, changed
	})

	return bare
}

func dropKeys(section *yaml.Node, keys []string) (dropped bool) {
	if section == nil || section.Kind != yaml.MappingNode {
		return false
	}

	for i := len(section.Content) - 2; i >= 0; i -= 2 {
		if slices.Contains(keys, section.Content[i].Value) {
			section.Content = slices.Delete(section.Content, i, i+2)
			dropped = true
		}
	}

	return dropped
}
