package template_test

import (
	"testing"

	"go.yaml.in/yaml/v3"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// FuzzInlineText writes free-form blocks as a text: that is YAML again, and takes no more memory than its values.
func FuzzInlineText(f *testing.F) {
	for _, raw := range []string{
		`{}`, `{"a":[1,1.10,true,null,"b"]}`, `{"a":"- b\n---\n*c"}`, `{"a":{"b":{"c":[[[{}]]]}}}`, `{"a":123456789012345678901234567890}`,
		`[]`, `"a"`, `{"a":1}{"b":2}`, `{"<<":"*a","y":"&a"}`, `{"a":"\u0085\u2028\ud800"}`,
	} {
		f.Add([]byte(raw))
	}

	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) > 16<<10 {
			return
		}

		foreigntest.WantAllocated(t, 128<<20, func() {
			text, err := template.InlineText(v1alpha1.FreeForm{Raw: raw})
			if err != nil {
				return
			}

			var read yaml.Node
			if err := yaml.Unmarshal([]byte(text), &read); err != nil {
				t.Errorf("%q becomes %q, which is no YAML: %v", raw, text, err)
			}
		})
	})
}
