package clusteraccess

import (
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestKinds(t *testing.T) {
	var kinds Kinds

	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	if kinds.Has(kind) {
		t.Error("an empty set has a kind")
	}

	kinds.Add(kind)

	if !kinds.Has(kind) {
		t.Error("the set does not have what was added")
	}

	for i := range 2 * maxKinds {
		kinds.Add(schema.GroupVersionKind{Version: "v1", Kind: strconv.Itoa(i)})
	}

	if len(kinds.kinds) != maxKinds || !kinds.Has(kind) {
		t.Errorf("a full set has %d kinds", len(kinds.kinds))
	}
}
