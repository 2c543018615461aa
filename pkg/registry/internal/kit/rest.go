package kit

import (
	"context"
	"fmt"
	"maps"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/memory"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/quota"
)

// REST serves the main resource of a kind. In front of the generic store it has the delete guard, the quota, the budget of updates and
// the refusal of watches from future versions, and it holds the memory of a request until its work is done.
type REST struct {
	*genericregistry.Store

	shortName string
	guard     guard
	ledger    *quota.Ledger
}

var (
	_ rest.StandardStorage      = &REST{}
	_ rest.ShortNamesProvider   = &REST{}
	_ rest.CategoriesProvider   = &REST{}
	_ rest.SingularNameProvider = &REST{}
)

// Create stores a new object.
func (r *REST) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions,
) (runtime.Object, error) {
	release, err := memory.Retain(ctx)
	if err != nil {
		return nil, err
	}
	defer release()

	reservation := r.ledger.Begin(r.DefaultQualifiedResource, len(options.DryRun) > 0)

	created, err := r.Store.Create(ctx, obj, reservation.Created(validate), options)
	reservation.Done(created, err)

	return created, explainTooLarge(err)
}

// Update changes an object.
func (r *REST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo,
	validateCreate rest.ValidateObjectFunc, validateUpdate rest.ValidateObjectUpdateFunc, forceAllowCreate bool,
	options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	release, err := memory.Retain(ctx)
	if err != nil {
		return nil, false, err
	}
	defer release()

	reservation := r.ledger.Begin(r.DefaultQualifiedResource, len(options.DryRun) > 0)

	bounded := &weighed{UpdatedObjectInfo: info}
	defer bounded.release()

	updated, created, err := r.Store.Update(ctx, name, bounded, reservation.Created(validateCreate), reservation.Updated(validateUpdate), forceAllowCreate, options)
	reservation.Done(updated, err)

	err = explainTooLarge(explainStrategic(err))
	if forceAllowCreate && bounded.stored { // only an apply may create what it names
		err = refuseApply(err)
	}

	return updated, created, err
}

// Delete deletes one object, if the guard allows it.
func (r *REST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc,
	options *metav1.DeleteOptions,
) (runtime.Object, bool, error) {
	release, err := memory.Retain(ctx)
	if err != nil {
		return nil, false, err
	}
	defer release()

	deleted, gone, err := r.Store.Delete(ctx, name, r.guarded(validate, options), options)

	return deleted, gone, explainTooLarge(err) // with finalizers it writes when the deletion began
}

// DeleteCollection deletes the selected objects. It stops at a guarded object and returns the guard's error; the
// objects before that one are deleted already.
func (r *REST) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions,
	list *metainternalversion.ListOptions,
) (runtime.Object, error) {
	release, err := memory.Retain(ctx)
	if err != nil {
		return nil, err
	}
	defer release()

	deleted, err := r.Store.DeleteCollection(ctx, r.guarded(validate, options), options, list)

	return deleted, explainTooLarge(err)
}

// ShortNames returns what kubectl users type.
func (r *REST) ShortNames() []string { return []string{r.shortName} }

// Categories returns the group of all our kinds.
func (r *REST) Categories() []string { return []string{Category} }

// guarded calls the guard before admission. The store calls it with the current object.
func (r *REST) guarded(validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if err := r.guard(ctx, obj, options); err != nil {
			return err
		}

		return validate(ctx, obj)
	}
}

// StatusREST serves the status subresource of a kind.
type StatusREST struct{ store *genericregistry.Store }

var (
	_ rest.Patcher             = &StatusREST{}
	_ rest.ResetFieldsStrategy = &StatusREST{}
)

// New makes an empty object.
func (r *StatusREST) New() runtime.Object { return r.store.New() }

// Destroy does nothing: the store belongs to the main resource.
func (r *StatusREST) Destroy() {}

// Get reads the whole object.
func (r *StatusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update writes the status. It never creates an object.
func (r *StatusREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo,
	validateCreate rest.ValidateObjectFunc, validateUpdate rest.ValidateObjectUpdateFunc, _ bool,
	options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	release, err := memory.Retain(ctx)
	if err != nil {
		return nil, false, err
	}
	defer release()

	bounded := &weighed{UpdatedObjectInfo: info}
	defer bounded.release()

	updated, created, err := r.store.Update(ctx, name, bounded, validateCreate, validateUpdate, false, options)

	return updated, created, explainTooLarge(explainStrategic(err))
}

// GetResetFields says which fields an apply of the status ignores.
func (r *StatusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable prints the object as the main resource does.
func (r *StatusREST) ConvertToTable(ctx context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, obj, options)
}

// Storage serves one kind and its subresources.
type Storage struct {
	// Plural is the kind's resource name.
	Plural string
	// Main serves the resource itself.
	Main *REST
	// Status serves the status subresource.
	Status *StatusREST
	// Scale serves the scale subresource; nil where the kind has none.
	Scale rest.Storage
}

// NewStorage makes the stores of a kind. Errors come from the storage configuration.
func NewStorage[T Object](d *Descriptor[T], scheme *runtime.Scheme, getter generic.RESTOptionsGetter) (*Storage, error) {
	main := newStrategy(d, scheme)
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return d.New() },
		NewListFunc:               d.NewList,
		PredicateFunc:             d.predicate,
		DefaultQualifiedResource:  d.Resource(),
		SingularQualifiedResource: v1alpha1.Resource(d.Singular),
		CreateStrategy:            main,
		UpdateStrategy:            main,
		DeleteStrategy:            main,
		ResetFieldsStrategy:       main,
		TableConvertor:            newTable(d.AllColumns()),
	}

	if err := store.CompleteWithOptions(&generic.StoreOptions{
		RESTOptions: getter,
		AttrFunc:    d.attributes,
		TriggerFunc: d.trigger(),
		Indexers:    d.indexers(),
	}); err != nil {
		return nil, fmt.Errorf("complete store of %s: %w", d.Plural, err)
	}

	statusStore := *store
	status := statusStrategy[T]{main}
	statusStore.UpdateStrategy, statusStore.ResetFieldsStrategy = status, status

	storage := &Storage{
		Plural: d.Plural,
		Main:   &REST{Store: store, shortName: d.ShortName, guard: guardOf(d)},
		Status: &StatusREST{store: &statusStore},
	}
	if d.Scale != nil {
		storage.Scale = &scaleREST[T]{store: store, descriptor: d}
	}

	return storage, nil
}

// LimitBy makes all writes of the kind, except those of the status, reserve room in the ledger. Call it before the
// storage serves.
func (s *Storage) LimitBy(ledger *quota.Ledger) {
	s.Main.ledger = ledger

	if scale, ok := s.Scale.(interface{ limitBy(ledger *quota.Ledger) }); ok {
		scale.limitBy(ledger)
	}
}

// AddTo adds the kind and its subresources to what a group serves.
func (s *Storage) AddTo(served map[string]rest.Storage) {
	maps.Copy(served, map[string]rest.Storage{s.Plural: s.Main, s.Plural + "/status": s.Status})

	if s.Scale != nil {
		served[s.Plural+"/scale"] = s.Scale
	}
}
