package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/siderolabs/omni/client/pkg/diff"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// Limits of a diff, in bytes.
const (
	// maxDiffBytes is the longest text that BoundedDiff returns.
	maxDiffBytes = 8 << 10
	// maxDiffLine bounds one line: an annotation may hold a whole file.
	maxDiffLine = 300
)

// Diff returns changes of a plan as text for people, resource by resource, the destructive ones first: a line with the
// action and the resource, then its labels, annotations and spec as a unified diff. The same changes always give the
// same text. It ends with a line break, and is empty without changes.
//
// Diff never shows content that may hold a secret, neither Omni's nor the template's: for every type but those of
// shownSpec, it shows only the size of the spec.
//
// changes are usually those of Plan.Changes and Plan.WaitingForOmni that an Apply did not make. Changes that are not in the
// plan, or that wait, get their first line only.
func (p *Plan) Diff(changes []Change) string {
	steps := make(map[string]step, len(p.steps))
	for _, s := range p.steps {
		steps[diffKey(s.change)] = s
	}

	var text strings.Builder

	for _, change := range p.inOrder(changes) {
		text.WriteString(diffHead(change))

		if s, found := steps[diffKey(change)]; found {
			text.WriteString(s.diff())
		}
	}

	return text.String()
}

// BoundedDiff cuts a text of Diff at the end of a line so that it has at most maxDiffBytes, and adds a last line with
// the size of the missing part.
func BoundedDiff(text string) string {
	if len(text) <= maxDiffBytes {
		return text
	}

	const room = 120 // for the last line

	kept := text[:strings.LastIndexByte(text[:maxDiffBytes-room], '\n')+1]
	missing := text[len(kept):]

	return fmt.Sprintf("%s... %d more lines (%d bytes) are left out; the controller logs all of it at verbosity 2\n",
		kept, strings.Count(missing, "\n"), len(missing))
}

func diffKey(change Change) string {
	return string(change.Action) + "|" + change.Type + "|" + change.ID + "|" + string(change.Part)
}

// inOrder sorts changes: destructive ones first, otherwise in the plan's order.
func (p *Plan) inOrder(changes []Change) []Change {
	rank := map[string]int{}
	for i, change := range slices.Concat(p.Changes, p.WaitingForOmni) {
		rank[diffKey(change)] = i
	}

	ordered := slices.Clone(changes)
	slices.SortStableFunc(ordered, func(a, b Change) int {
		return cmp.Or(DestructiveFirst(a, b), cmp.Compare(rank[diffKey(a)], rank[diffKey(b)]))
	})

	return ordered
}

// diffHead returns the first line of a change.
func diffHead(change Change) string {
	line := "# " + change.String()

	switch {
	case change.Destructive:
		line += ": " + change.Reason + " (destructive)"
	case change.Reason != "":
		line += ": " + change.Reason
	}

	if change.TearingDown {
		line += "; Omni is tearing it down"
	}

	return diffLine(line) + "\n"
}

// diff returns what a step changes in its resource.
func (s step) diff() string {
	before, after := describe(s.old), describe(s.new)

	text, err := diff.Compute([]byte(before.text), []byte(after.text))
	if err != nil {
		text = " the difference cannot be shown: " + redact.Line(err.Error()) + "\n"
	}

	var lines strings.Builder

	for line := range strings.Lines(text) {
		lines.WriteString(diffLine(strings.TrimSuffix(line, "\n")) + "\n")
	}

	if hidden := before.hiddenBeside(after); hidden != "" {
		lines.WriteString(hidden + "\n")
	}

	return lines.String()
}

// diffLine makes a line safe to print: bounded, and without what could manipulate a terminal or hide a change.
func diffLine(line string) string {
	line = strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return '?'
		}

		return r
	}, line)

	return redact.Bounded(line, maxDiffLine)
}

// description is one side of a change: the part of a resource that may be shown, and the size of the rest.
type description struct {
	exists bool
	text   string            // labels, annotations and a spec that may be shown, as YAML
	hidden string            // how much spec is not shown, such as "12 lines"
	spec   resource.Resource // the resource whose spec is not shown; nil if its spec is shown
}

// hiddenBeside returns a line with the size of the spec that is not shown, if it changes.
func (d description) hiddenBeside(after description) string {
	switch {
	case d.hidden == "" && after.hidden == "":
		return ""
	case !d.exists:
		return fmt.Sprintf("+content: %s, not shown", after.hidden)
	case !after.exists:
		return fmt.Sprintf("-content: %s, not shown", d.hidden)
	case sameSpec(d.spec, after.spec):
		return ""
	default:
		return fmt.Sprintf("~content changes: %s, then %s, not shown", d.hidden, after.hidden)
	}
}

// shownSpec reports whether the spec of a type may be shown. All other types may hold keys, tokens or certificates, in
// Omni as well as in a template: patches, manifests, jobs of health checks, kernel arguments.
func shownSpec(resourceType resource.Type) bool {
	switch resourceType {
	case omnires.ClusterType, omnires.MachineSetType, omnires.MachineSetNodeType, omnires.ExtensionsConfigurationType,
		omni.MachineInstallDiskConfigType:
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

	// Our record of what we wrote repeats it.
	annotations := maps.Clone(metadata.Annotations().Raw())
	delete(annotations, v1alpha1.MarkApplied)

	if len(annotations) > 0 {
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
	if config, isConfig := item.(*omni.MachineInstallDiskConfig); isConfig {
		fields := map[string]any{}
		for name, value := range config.TypedSpec().Fields() {
			fields[name] = value
		}

		return fields
	}

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

	if cluster, isCluster := item.(*omnires.Cluster); isCluster && omni.DisablesPublicDiscovery(cluster.TypedSpec().Value.GetFeatures()) {
		if features, shown := fields["features"].(map[string]any); shown {
			features["disablePublicDiscoveryService"] = true
		}
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
