package kit

import (
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func TestSameJSON(t *testing.T) {
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{`{"a":1,"b":{"c":2,"d":[3,4]}}`, `{"b":{"d":[3,4],"c":2},"a":1}`, true},
		{`{"a":[1,2]}`, `{"a":[2,1]}`, false},
		{`{"a":1.0}`, `{"a":1.00}`, false},
		{`{"a":1}`, `{"a":1.0}`, false},
		{`{"a":1000}`, `{"a":1e3}`, false},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`, false},
		{`{"a":18446744073709551617}`, `{"a":18446744073709551616}`, false},
		{`{"a":"1"}`, `{"a":1}`, false},
		{`{"a":null}`, `{}`, false},
		{`{"a":[]}`, `{"a":{}}`, false},
		{`{"a":"\u00e9"}`, `{"a":"é"}`, true},
		{`{"a":1,"a":2}`, `{"a":2}`, true},
		{`{"a":false,"b":true}`, `{"b":true,"a":false}`, true},
		{`{`, `{`, false},
	} {
		if got := sameJSON([]byte(test.a), []byte(test.b)); got != test.same {
			t.Errorf("%s and %s: %t, want %t", test.a, test.b, got, test.same)
		}
	}
}

// Another order of keys is no change, and the object stays as it was stored.
func TestOrderOfKeysIsNoChange(t *testing.T) {
	clusterOf := func(raw string) *v1alpha1.OmniCluster {
		cluster := &v1alpha1.OmniCluster{Spec: v1alpha1.OmniClusterSpec{Patches: []v1alpha1.Patch{{Name: "a", Inline: &v1alpha1.FreeForm{Raw: []byte(raw)}}}}}
		cluster.Generation = 3

		return cluster
	}

	const stored = `{"b":{"d":1.10,"c":2},"a":[1]}`

	for raw, want := range map[string]struct {
		generation int64
		stored     string
	}{
		stored:                                 {3, stored},
		`{"a":[1],"b":{"c":2,"d":1.10}}`:       {3, stored},
		`{"a":[1],"b":{"c":2,"d":1.1}}`:        {4, `{"a":[1],"b":{"c":2,"d":1.1}}`},
		`{"a":[1],"b":{"c":2,"d":1.10,"e":0}}`: {4, `{"a":[1],"b":{"c":2,"d":1.10,"e":0}}`},
	} {
		updated := clusterOf(raw)
		clusterStrategy().PrepareForUpdate(t.Context(), updated, clusterOf(stored))

		if got := string(updated.Spec.Patches[0].Inline.Raw); updated.Generation != want.generation || got != want.stored {
			t.Errorf("%s: generation %d with %s, want %d with %s", raw, updated.Generation, got, want.generation, want.stored)
		}
	}
}
