package kit

import (
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

const (
	labelName      = "metadata.name"
	labelNamespace = "metadata.namespace"
)

// AddFieldLabels registers in the scheme which field selectors the kind supports. The error for any other selector
// names the supported ones.
func (d *Descriptor[T]) AddFieldLabels(scheme *runtime.Scheme) error {
	allowed := []string{labelName, labelNamespace}
	if d.Selectable != nil {
		allowed = append(allowed, d.Selectable.Label)
	}

	convert := func(label, value string) (string, string, error) {
		for _, known := range allowed {
			if label == known {
				return label, value, nil
			}
		}

		return "", "", fmt.Errorf("field label not supported: %q; %s can be selected by %q", label, d.Plural, allowed)
	}

	if err := scheme.AddFieldLabelConversionFunc(v1alpha1.SchemeGroupVersion.WithKind(d.Kind), convert); err != nil {
		return fmt.Errorf("add field selectors of %s: %w", d.Kind, err)
	}

	return nil
}

// attributes are what label and field selectors are matched with.
func (d *Descriptor[T]) attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	object, ok := obj.(T)
	if !ok {
		return nil, nil, fmt.Errorf("%T is not an %s", obj, d.Kind)
	}

	set := fields.Set{labelName: object.GetName(), labelNamespace: object.GetNamespace()}
	if d.Selectable != nil {
		set[d.Selectable.Label] = d.Selectable.Value(object)
	}

	return object.GetLabels(), set, nil
}

// predicate makes the filter of a list or watch; the watch cache looks the selectable field up in its
// index.
func (d *Descriptor[T]) predicate(label labels.Selector, fieldSelector fields.Selector) storage.SelectionPredicate {
	predicate := storage.SelectionPredicate{Label: label, Field: fieldSelector, GetAttrs: d.attributes}
	if d.Selectable != nil {
		predicate.IndexFields = []string{d.Selectable.Label}
	}

	return predicate
}

// trigger lets the watch cache notify only the watchers that select the changed object's value.
func (d *Descriptor[T]) trigger() storage.IndexerFuncs {
	if d.Selectable == nil {
		return nil
	}

	return storage.IndexerFuncs{d.Selectable.Label: func(obj runtime.Object) string {
		return d.Selectable.Value(obj.(T))
	}}
}

// indexers are the watch cache's indexes.
func (d *Descriptor[T]) indexers() *cache.Indexers {
	if d.Selectable == nil {
		return nil
	}

	return &cache.Indexers{storage.FieldIndex(d.Selectable.Label): func(obj any) ([]string, error) {
		object, ok := obj.(T)
		if !ok {
			return nil, fmt.Errorf("%T is not an %s", obj, d.Kind)
		}

		return []string{d.Selectable.Value(object)}, nil
	}}
}
