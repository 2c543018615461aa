package app

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mappings is a mapper that keeps what it found: every list from a cache that is limited to namespaces asks for the
// kind's scope, and the mapper of the client library searches anew each time. The resource and the scope of a kind that
// the controller reads do not change while it runs.
type mappings struct {
	meta.RESTMapper

	found sync.Map // *meta.RESTMapping by schema.GroupVersionKind
}

// RESTMapping implements meta.RESTMapper. The result must not be changed.
func (m *mappings) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 {
		return m.RESTMapper.RESTMapping(kind, versions...)
	}

	key := kind.WithVersion(versions[0])
	if found, ok := m.found.Load(key); ok {
		return found.(*meta.RESTMapping), nil //nolint:forcetypeassert // nothing else is stored
	}

	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if err == nil {
		m.found.Store(key, mapping)
	}

	return mapping, err
}
