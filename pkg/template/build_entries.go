package template

import (
	"cmp"
	"errors"
	"fmt"
	"unicode/utf8"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// patches keeps the order: Omni applies patches in it, and derives their IDs from it.
func (b builder) patches(in []v1alpha1.Patch) ([]patchEntry, error) {
	entries := make([]patchEntry, 0, len(in))

	for i, patch := range in {
		var blocks []v1alpha1.FreeForm
		if patch.Inline != nil {
			blocks = []v1alpha1.FreeForm{*patch.Inline}
		}

		text, err := b.text(blocks, patch.ValueFrom)
		if err != nil {
			return nil, fmt.Errorf("patch %d (%s): %w", i, cmp.Or(patch.IDOverride, patch.Name), err)
		}

		entries = append(entries, patchEntry{
			Name:        patch.Name,
			IDOverride:  patch.IDOverride,
			Labels:      patch.Labels,
			Annotations: patch.Annotations,
			Inline:      text,
		})
	}

	return entries, nil
}

// manifests keeps the order, from which Omni derives the IDs.
func (b builder) manifests(in []v1alpha1.Manifest) ([]manifestEntry, error) {
	entries := make([]manifestEntry, 0, len(in))

	for _, manifest := range in {
		text, err := b.text(manifest.Inline, manifest.ValueFrom)
		if err != nil {
			return nil, fmt.Errorf("manifest %q: %w", manifest.Name, err)
		}

		entries = append(entries, manifestEntry{
			Name:        manifest.Name,
			Mode:        string(cmp.Or(manifest.Mode, v1alpha1.ManifestFull)),
			Labels:      manifest.Labels,
			Annotations: manifest.Annotations,
			Inline:      text,
		})
	}

	return entries, nil
}

func (b builder) healthchecks(in []v1alpha1.Healthcheck) ([]healthcheckEntry, error) {
	entries := make([]healthcheckEntry, 0, len(in))

	for _, check := range in {
		name := cmp.Or(check.IDOverride, check.Name)
		if check.Job == nil {
			return nil, fmt.Errorf("healthcheck %q: job is missing", name)
		}

		text, err := canonicalText(b.within, *check.Job)
		if err != nil {
			return nil, fmt.Errorf("healthcheck %q: %w", name, err)
		}

		entries = append(entries, healthcheckEntry{
			Name:        check.Name,
			IDOverride:  check.IDOverride,
			Labels:      check.Labels,
			Annotations: check.Annotations,
			Interval:    string(check.Interval),
			Job:         literal(text),
		})
	}

	return entries, nil
}

// text is the content of a block: the inline objects in canonical form, or the value as it is.
func (b builder) text(inline []v1alpha1.FreeForm, from *v1alpha1.ValueSource) (literal, error) {
	switch {
	case len(inline) > 0 && from == nil:
		text, err := canonicalText(b.within, inline...)

		return literal(text), err
	case from != nil && len(inline) == 0:
		return b.value(*from)
	default:
		return "", errors.New("exactly one of inline and valueFrom is needed")
	}
}

func (b builder) value(from v1alpha1.ValueSource) (literal, error) {
	key, err := keyOf(from)
	if err != nil {
		return "", err
	}

	text, err := b.values(from)
	if err != nil {
		return "", fmt.Errorf("key %q of %s %q: %w", key.ref.Key, key.kind, key.ref.Name, err)
	}

	if !utf8.ValidString(text) {
		return "", fmt.Errorf("key %q of %s %q: %w", key.ref.Key, key.kind, key.ref.Name, errNotText)
	}

	if err := b.within.take(len(text)); err != nil {
		return "", err
	}

	return literal(text), nil
}
