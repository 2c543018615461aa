package template

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// ValueFunc returns the text that a valueFrom stands for. Its errors are wrapped, so that errors.As finds the
// caller's own types in the error of Render. An error must not hold the text.
type ValueFunc func(v1alpha1.ValueSource) (string, error)

// Reference is the ValueFunc that reads nothing: a YAML comment that names the object and the key. A template
// made with it has the right documents, names and order, and no content of any ConfigMap or Secret. It is for
// reading, never for applying, and Omni's own rules see to that: a patch that is only a comment is refused
// ("config not found"). Its hash differs from that of the applied template.
func Reference(source v1alpha1.ValueSource) (string, error) {
	key, err := keyOf(source)
	if err != nil {
		return "", err
	}

	// JSON quotes line breaks, so that a hostile name cannot leave the comment.
	name, err := json.Marshal(key.ref.Name)
	if err != nil {
		return "", fmt.Errorf("name of the %s: %w", key.kind, err)
	}

	entry, err := json.Marshal(key.ref.Key)
	if err != nil {
		return "", fmt.Errorf("key of the %s: %w", key.kind, err)
	}

	return fmt.Sprintf("# valueFrom: key %s of %s %s (the content is not shown)\n", entry, key.kind, name), nil
}

// Values are the sources that Render will ask its ValueFunc for, without duplicates: ConfigMaps before
// Secrets, each sorted by name and key. The controller watches them.
func (d *Documents) Values() []v1alpha1.ValueSource {
	var sources []v1alpha1.ValueSource

	add := func(source *v1alpha1.ValueSource) {
		if source != nil {
			sources = append(sources, *source)
		}
	}
	addPatches := func(patches []v1alpha1.Patch) {
		for _, patch := range patches {
			add(patch.ValueFrom)
		}
	}

	addPatches(d.Cluster.Spec.Patches)
	addPatches(d.ControlPlane.Spec.Patches)

	for _, manifest := range d.Cluster.Spec.Kubernetes.Manifests {
		add(manifest.ValueFrom)
	}

	for _, set := range d.Workers {
		addPatches(set.Spec.Patches)
	}

	for _, machine := range d.Machines {
		addPatches(machine.Spec.Patches)
	}

	slices.SortFunc(sources, compareSources)

	return slices.CompactFunc(sources, func(a, b v1alpha1.ValueSource) bool { return compareSources(a, b) == 0 })
}

// sourceKey is a ValueSource with its member made explicit.
type sourceKey struct {
	kind string
	ref  v1alpha1.KeyReference
}

func keyOf(source v1alpha1.ValueSource) (sourceKey, error) {
	switch {
	case source.ConfigMapKeyRef != nil && source.SecretKeyRef == nil:
		return sourceKey{kind: "ConfigMap", ref: *source.ConfigMapKeyRef}, nil
	case source.SecretKeyRef != nil && source.ConfigMapKeyRef == nil:
		return sourceKey{kind: "Secret", ref: *source.SecretKeyRef}, nil
	default:
		return sourceKey{}, errors.New("valueFrom needs exactly one of configMapKeyRef and secretKeyRef")
	}
}

// compareSources orders malformed sources first; Render reports them.
func compareSources(a, b v1alpha1.ValueSource) int {
	left, _ := keyOf(a)
	right, _ := keyOf(b)

	return cmp.Or(
		cmp.Compare(left.kind, right.kind),
		cmp.Compare(left.ref.Name, right.ref.Name),
		cmp.Compare(left.ref.Key, right.ref.Key),
	)
}

// maxText is how large the text of a template may be, in bytes; and, together, that of the blocks in it. In YAML each line of
// a deeply nested list is indented, so the text can have a hundred times the size of the stored objects. The largest
// templates in use have a few hundred kilobytes.
const maxText = 16 << 20

// tooLargeError is returned when a template is larger than maxText.
type tooLargeError struct{}

func (tooLargeError) Error() string {
	return fmt.Sprintf("the template would be larger than %d MiB as text: use fewer or smaller patches and manifests, or nest them less deeply", maxText>>20)
}

// budget is how many bytes of text may still be written.
type budget struct{ left int }

func newBudget() *budget { return &budget{left: maxText} }

// take counts bytes. The error is a tooLargeError.
func (b *budget) take(bytes int) error {
	if b.left -= bytes; b.left < 0 {
		return tooLargeError{}
	}

	return nil
}

// encode returns documents as YAML, separated by ---, as long as the budget lasts.
func (b *budget) encode(documents int, document func(i int) (any, error)) ([]byte, error) {
	text := &boundedText{budget: b}

	encoder := yaml.NewEncoder(text)
	encoder.SetIndent(indent)

	for i := range documents {
		content, err := document(i)
		if err != nil {
			return nil, err
		}

		if err := encoder.Encode(content); err != nil {
			return nil, text.explain(err)
		}
	}

	if err := encoder.Close(); err != nil {
		return nil, text.explain(err)
	}

	return text.Bytes(), nil
}

// boundedText collects text within a budget.
type boundedText struct {
	bytes.Buffer

	budget *budget
}

// Write implements io.Writer.
func (t *boundedText) Write(p []byte) (int, error) {
	if err := t.budget.take(len(p)); err != nil {
		return 0, err
	}

	return t.Buffer.Write(p)
}

// explain returns the cause of an error of the encoder, which hides it.
func (t *boundedText) explain(err error) error {
	if t.budget.left < 0 {
		return tooLargeError{}
	}

	return err
}
