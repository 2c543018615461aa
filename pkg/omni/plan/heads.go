package plan

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"go.yaml.in/yaml/v3"
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
	if err != nil || found.features == (features{}) && !found.selectsDisks() {
		return document, found, err
	}

	bare, err := without(document, unknownKeys())

	return bare, found, err
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
func without(document []byte, drop sections) ([]byte, error) {
	var text bytes.Buffer

	decoder, encoder := yaml.NewDecoder(bytes.NewReader(document)), yaml.NewEncoder(&text)

	for {
		var one yaml.Node

		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			err = encoder.Close()

			return text.Bytes(), err
		} else if err != nil {
			return nil, err
		}

		for name, keys := range drop {
			dropKeys(valueOf(&one, name), keys)
		}

		if err := encoder.Encode(&one); err != nil {
			return nil, err
		}
	}
}

func dropKeys(section *yaml.Node, keys []string) {
	if section == nil {
		return
	}

	for _, key := range keys {
		if i := keyIndex(section, key); i >= 0 {
			section.Content = slices.Delete(section.Content, i, i+2)
		}
	}
}

// valueOf returns the value of a key of a document; nil if it has none.
func valueOf(document *yaml.Node, key string) *yaml.Node {
	if len(document.Content) != 1 {
		return nil
	}

	if i := keyIndex(document.Content[0], key); i >= 0 {
		return document.Content[0].Content[i+1]
	}

	return nil
}

// keyIndex returns where a mapping has a key; -1 if it does not.
func keyIndex(mapping *yaml.Node, key string) int {
	if mapping.Kind != yaml.MappingNode {
		return -1
	}

	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return i
		}
	}

	return -1
}
