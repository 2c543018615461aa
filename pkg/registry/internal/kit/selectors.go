package kit

import (
	"context"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
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

// versionTimeout is how long one small read of the storage's current resource version may take.
const versionTimeout = 2 * time.Second

// Watch sends the changes since a resource version. Of a version that the storage has not reached yet it says that it
// is expired, so that clients list again: such a version was handed out before the storage was restored from an older
// snapshot. Without this check the watch would be silent until the storage has passed the version, and its client
// would keep objects that no longer exist.
func (r *REST) Watch(ctx context.Context, options *metainternalversion.ListOptions) (watch.Interface, error) {
	if options != nil && options.ResourceVersion != "" && options.ResourceVersion != "0" {
		current, err := r.currentVersion(ctx)
		if err != nil {
			return nil, err
		}

		if refusal := refuseFuture(options.ResourceVersion, current); refusal != nil {
			return endedWith(refusal), nil
		}
	}

	return r.Store.Watch(ctx, options)
}

// currentVersion reads the storage's current resource version. If that takes too long or fails, the client is told to
// try again: it keeps its objects and repeats the same watch. Any other error would make it list everything again.
func (r *REST) currentVersion(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()

	current, err := r.Storage.Storage.GetCurrentResourceVersion(ctx)
	if err != nil {
		return 0, apierrors.NewTooManyRequests("the storage did not tell its current resource version: "+err.Error(), 1)
	}

	return current, nil
}

// refuseFuture returns an error of reason Expired for a version above the current one. It leaves a malformed version
// to the store.
func refuseFuture(requested string, current uint64) *apierrors.StatusError {
	version, err := strconv.ParseUint(requested, 10, 64)
	if err != nil || version <= current {
		return nil
	}

	return apierrors.NewResourceExpired(fmt.Sprintf(
		"resource version %d is not reached yet, the storage is at %d: it was restored from an older snapshot; list again", version, current))
}

// endedWith returns a watch that sends one error and ends, as the watch cache does for a version that is too old. An
// error of the request would not do: a RetryWatcher takes it for a passing failure, and asks for the version for ever.
func endedWith(refusal *apierrors.StatusError) watch.Interface {
	events := make(chan watch.Event, 1)
	events <- watch.Event{Type: watch.Error, Object: &refusal.ErrStatus}
	close(events)

	return watch.NewProxyWatcher(events)
}
