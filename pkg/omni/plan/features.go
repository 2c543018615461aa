package plan

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/template"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// features are those of a Cluster document that the library's template does not know: Omni's templates have them since 1.10. Nil
// leaves what Omni has.
type features struct {
	EnableNodeAuditSkip           *bool `yaml:"enableNodeAuditSkip"`
	DisablePublicDiscoveryService *bool `yaml:"disablePublicDiscoveryService"`
}

// set puts those that are set into a Cluster. Omni 1.9 keeps the second one without a meaning.
func (f features) set(cluster *omnires.Cluster) {
	spec := cluster.TypedSpec().Value.GetFeatures()

	if f.EnableNodeAuditSkip != nil {
		spec.EnableNodeAuditSkip = *f.EnableNodeAuditSkip
	}

	if f.DisablePublicDiscoveryService != nil {
		omni.SetDisablePublicDiscovery(spec, *f.DisablePublicDiscoveryService)
	}
}

// addTo adds the features to the library's result, which has no update of a Cluster that differs in them only.
func (f features) addTo(result *template.SyncResult, wanted *parsed, live *omnires.Cluster) {
	if f == (features{}) {
		return
	}

	for _, item := range result.Create {
		if cluster, isCluster := item.(*omnires.Cluster); isCluster {
			f.set(cluster)
		}
	}

	isCluster := func(update template.UpdateChange) bool { return update.Old.Metadata().Type() == omnires.ClusterType }
	if live == nil || slices.ContainsFunc(result.Update, isCluster) {
		return
	}

	for _, item := range wanted.resources {
		if cluster, isCluster := item.(*omnires.Cluster); isCluster {
			asked := cluster.DeepCopy()
			asked.Metadata().SetVersion(live.Metadata().Version())
			asked.Metadata().SetCreated(live.Metadata().Created())
			asked.Metadata().SetUpdated(live.Metadata().Updated())
			asked.Metadata().Finalizers().Set(*live.Metadata().Finalizers())

			result.Update = slices.Insert(result.Update, 0, template.UpdateChange{Old: live, New: asked})
		}
	}
}

// featuresDiffer reports whether two messages are features that differ in the field that the library does not know.
func featuresDiffer(before, after protoreflect.Message) bool {
	was, hadFeatures := before.Interface().(*specs.ClusterSpec_Features)
	is, hasFeatures := after.Interface().(*specs.ClusterSpec_Features)

	return hadFeatures && hasFeatures && omni.DisablesPublicDiscovery(was) != omni.DisablesPublicDiscovery(is)
}

// heads is what we read of a template ourselves.
type heads struct {
	described map[string]bool // the machines that have a Machine document of their own: only there can a template set a lock
	features  features
	backup    bool // whether the Cluster document says anything about backups
}

// splitFeatures reads the heads of a template, and returns it without the features that the library refuses.
func splitFeatures(document []byte) ([]byte, heads, error) {
	found, err := readHeads(document)
	if err != nil || found.features == (features{}) {
		return document, found, err
	}

	bare, err := withoutFeatures(document)

	return bare, found, err
}

func readHeads(document []byte) (heads, error) {
	found := heads{described: map[string]bool{}}
	decoder := yaml.NewDecoder(bytes.NewReader(document))

	for {
		var head struct {
			Kind     string `yaml:"kind"`
			Name     string `yaml:"name"`
			Features struct {
				Own    features  `yaml:",inline"`
				Backup yaml.Node `yaml:"backupConfiguration"`
			} `yaml:"features"`
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
		case "Cluster":
			found.features, found.backup = head.Features.Own, !head.Features.Backup.IsZero()
		}
	}
}

// withoutFeatures returns a template without the keys of features, which the library refuses.
func withoutFeatures(document []byte) ([]byte, error) {
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

		if section := valueOf(&one, "features"); section != nil {
			for _, key := range []string{"enableNodeAuditSkip", "disablePublicDiscoveryService"} {
				if i := keyIndex(section, key); i >= 0 {
					section.Content = slices.Delete(section.Content, i, i+2)
				}
			}
		}

		if err := encoder.Encode(&one); err != nil {
			return nil, err
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
