package plan

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"

	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// shownSpec reports whether the spec of a type may be shown. All other types may hold keys, tokens or certificates, in
// Omni as well as in a template: patches, manifests, jobs of health checks, kernel arguments.
func shownSpec(resourceType resource.Type) bool {
	switch resourceType {
	case omnires.ClusterType, omnires.MachineSetType, omnires.MachineSetNodeType, omnires.ExtensionsConfigurationType:
		return true
	default:
		return false
	}
}

// describe returns what a diff may show of a resource; nothing for nil.
func describe(item resource.Resource) description {
	if item == nil {
		return description{}
	}

	metadata := item.Metadata()
	shown := map[string]any{}

	if labels := metadata.Labels().Raw(); len(labels) > 0 {
		shown["labels"] = labels
	}

	if annotations := metadata.Annotations().Raw(); len(annotations) > 0 {
		shown["annotations"] = annotations
	}

	described := description{exists: true}

	if shownSpec(metadata.Type()) {
		if spec := specFields(item); len(spec) > 0 {
			shown["spec"] = spec
		}
	} else {
		described.hidden, described.spec = measureSpec(item), item
	}

	if len(shown) == 0 {
		return described
	}

	// yaml.Marshal sorts the keys of maps.
	if text, err := yaml.Marshal(shown); err == nil {
		described.text = string(text)
	}

	return described
}

// specFields returns a spec as JSON fields; nil if it has none.
func specFields(item resource.Resource) map[string]any {
	message, ok := protoOf(item)
	if !ok {
		return nil
	}

	// protojson varies its white space on purpose; decoding drops it again.
	text, err := protojson.Marshal(message)
	if err != nil {
		return nil
	}

	var fields map[string]any
	if json.Unmarshal(text, &fields) != nil {
		return nil
	}

	return fields
}

// sameSpec compares the specs of two resources. Specs with the same content are the same, even if it is compressed
// differently.
func sameSpec(a, b resource.Resource) bool {
	left, readable := content(a)
	right, alsoReadable := content(b)

	if readable && alsoReadable && left != right {
		return false
	}

	if readable && alsoReadable && a.Metadata().Type() == omnires.ConfigPatchType {
		return true
	}

	if equal, ok := a.Spec().(interface{ Equal(any) bool }); ok {
		return equal.Equal(b.Spec())
	}

	return reflect.DeepEqual(a.Spec(), b.Spec())
}

// measureSpec returns the size of a spec, in a unit that fits its type, and nothing of its content.
func measureSpec(item resource.Resource) string {
	if arguments, ok := item.(*omnires.KernelArgs); ok {
		return words.Plural(len(arguments.TypedSpec().Value.GetArgs()), "argument")
	}

	text, readable := content(item)
	if !readable {
		return "some"
	}

	return words.Plural(strings.Count(strings.TrimSuffix(text, "\n"), "\n")+1, "line")
}
