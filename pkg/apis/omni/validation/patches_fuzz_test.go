package validation

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// Inline patches go through Talos' own decoder, which decodes them several times.
func FuzzInlinePatch(f *testing.F) {
	for _, text := range []string{
		`{"machine":{"network":{"hostname":"a"}}}`, `{"apiVersion":"v1alpha1","kind":"HostnameConfig","hostname":"a"}`, `{"machine":{"unknown":{"a":[{"b":"c"}]}}}`,
		`{"machine":{"sysctls":{` + strings.Repeat(`"a":"",`, 4000) + `"b":""}}}`, `{"a":[` + strings.Repeat("{},", 20_000) + `{}]}`,
		`{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, `{"a":"&a","b":"*a"}`, `{"$patch":"delete"}`,
	} {
		f.Add([]byte(text))
	}

	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 64<<10 || !json.Valid(text) {
			return
		}

		foreigntest.WantAllocated(t, 128<<20, func() {
			for _, err := range validateInlinePatch(&v1alpha1.FreeForm{Raw: text}, field.NewPath("inline")) {
				if len(err.Error()) > 4<<10 {
					t.Errorf("an error of %d bytes", len(err.Error()))
				}
			}
		})
	})
}
