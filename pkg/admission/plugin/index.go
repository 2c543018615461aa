package plugin

import (
	"fmt"

	"k8s.io/client-go/tools/cache"
)

// indexName is the one index of an informer that a plugin uses.
const indexName = "plugin"

// Index has the objects of one kind, each with only what a plugin reads of it, and finds them by a key.
type Index[T any] struct {
	informer cache.SharedIndexInformer
	err      error
}

// Use takes the kind's informer, before it starts: only strips an object, keys are those by which it is found. No other plugin may
// use the kind in this way.
func (i *Index[T]) Use(informer cache.SharedIndexInformer, only func(T) T, keys func(T) []string) {
	i.informer = informer

	i.err = informer.SetTransform(func(obj any) (any, error) {
		if one, ok := obj.(T); ok {
			return only(one), nil
		}

		return obj, nil
	})
	if i.err != nil {
		return
	}

	i.err = informer.AddIndexers(cache.Indexers{indexName: func(obj any) ([]string, error) {
		one, ok := obj.(T)
		if !ok {
			return nil, fmt.Errorf("%T is not a %T", obj, one)
		}

		return keys(one), nil
	}})
}

// Initialized returns an error, with the name of the plugin, if Use was not called or had no effect.
func (i *Index[T]) Initialized(plugin string) error {
	if i.informer == nil {
		return fmt.Errorf("%s has no informers", plugin)
	}

	return i.err
}

// HasSynced reports whether all objects are known.
func (i *Index[T]) HasSynced() bool { return i.informer.HasSynced() }

// By returns the objects that have a key.
func (i *Index[T]) By(key string) ([]T, error) {
	found, err := i.informer.GetIndexer().ByIndex(indexName, key)
	if err != nil {
		return nil, err
	}

	objects := make([]T, 0, len(found))
	for _, one := range found {
		objects = append(objects, one.(T)) //nolint:forcetypeassert // the informer's own kind
	}

	return objects, nil
}
