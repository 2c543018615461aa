package app

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// countingMapper counts the searches.
type countingMapper struct {
	meta.RESTMapper

	searches int
}

func (m *countingMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	m.searches++

	return m.RESTMapper.RESTMapping(kind, versions...)
}

// What was found is not searched again; what was not found is.
func TestMappingsAreKept(t *testing.T) {
	group := schema.GroupVersion{Group: "example.com", Version: "v1"}
	known := meta.NewDefaultRESTMapper([]schema.GroupVersion{group})
	counting := &countingMapper{RESTMapper: known}
	mapper := &mappings{RESTMapper: counting}

	for range 2 {
		if _, err := mapper.RESTMapping(schema.GroupKind{Group: "example.com", Kind: "Late"}, "v1"); !meta.IsNoMatchError(err) {
			t.Fatal(err)
		}
	}

	known.Add(group.WithKind("Late"), meta.RESTScopeNamespace)

	for range 3 {
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "example.com", Kind: "Late"}, "v1")
		if err != nil || mapping.Scope.Name() != meta.RESTScopeNameNamespace {
			t.Fatal(mapping, err)
		}
	}

	if counting.searches != 3 {
		t.Errorf("%d searches", counting.searches)
	}

	// Without a version, the group's preferred one counts, and that may change.
	for range 2 {
		if _, err := mapper.RESTMapping(schema.GroupKind{Group: "example.com", Kind: "Late"}); err != nil {
			t.Fatal(err)
		}
	}

	if counting.searches != 5 {
		t.Errorf("%d searches", counting.searches)
	}
}
