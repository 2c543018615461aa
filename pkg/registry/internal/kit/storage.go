package kit

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/quota"
)

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
		TableConvertor:            newTable(d.Columns),
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
