package template

import (
	"strings"
	"testing"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"go.yaml.in/yaml/v3"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// manifestText renders a cluster whose only manifest has the text, and returns what Omni makes of it.
func manifestText(t testing.TB, text string) string {
	t.Helper()

	in := loadInput(t, "minimal")
	in.Cluster.Spec.Kubernetes.Manifests = []v1alpha1.Manifest{{
		Name:      "subject",
		ValueFrom: &v1alpha1.ValueSource{ConfigMapKeyRef: &v1alpha1.KeyReference{Name: "any", Key: "any"}},
	}}

	rendered := render(t, in, func(v1alpha1.ValueSource) (string, error) { return text, nil })

	for _, res := range translate(t, rendered) {
		if group, ok := res.(*omni.KubernetesManifestGroup); ok {
			data, err := group.TypedSpec().Value.GetUncompressedData()
			if err != nil {
				t.Fatal(err)
			}
			defer data.Free()

			return string(data.Data())
		}
	}

	t.Fatal("the manifest is missing")

	return ""
}

// awkwardTexts are those that a block of lines or another YAML reader could change.
func awkwardTexts() []string {
	return []string{
		"", " ", "\n", "\n\n", "\t", "a", "a\n", "a\n\n", "a\n\n\n", "\na", " a: 1\nb: 2\n", "\ta\n",
		"a\n\tb\n", "a: |\n  b\n\n\n  c\n", "a \n", "a\t\n", "a\r\nb\r\n", "a\rb", "# only a comment\n", "---\na: 1\n---\n",
		"...\n", "- a\n- b", "key: 'it''s'\n", "\"quoted\"", "a\u0085b\n", "a\u2028b\u2029c\n", "\ufeffa\n", "a\u00a0b\n",
		"a\x00b", "a\x07b", "a\x7fb", "Grüße 🙂\n", "%TAG\n", "!!binary x\n", "&a *b\n", "a\n  \nb\n", "a\n\n b\n",
		strings.Repeat("long ", 100) + "end", "true", "~", "1e3", "{}", "[]", "a: b # c", "\\", "\\n",
	}
}

func TestTextIsKeptByteForByte(t *testing.T) {
	for _, text := range awkwardTexts() {
		if got := manifestText(t, text); got != text {
			t.Errorf("Omni got %q, want %q", got, text)
		}
	}
}

func FuzzTextIsKeptByteForByte(f *testing.F) {
	for _, text := range awkwardTexts() {
		f.Add(text)
	}

	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "?")
		if got := manifestText(t, text); got != text {
			t.Errorf("Omni got %q, want %q", got, text)
		}
	})
}

func TestReadableTextIsABlock(t *testing.T) {
	for text, want := range map[string]string{
		"machine:\n  env: {}\n": "x: |\n  machine:\n    env: {}\n",
		"no line break":         "x: |-\n  no line break\n",
		"a\n\tb\n":              "x: |\n  a\n  \tb\n",
		"a\r\n":                 `x: "a\r\n"` + "\n",
		" a":                    `x: " a"` + "\n",
		"":                      `x: ""` + "\n",
	} {
		var out strings.Builder

		encoder := yaml.NewEncoder(&out)
		encoder.SetIndent(indent)

		if err := encoder.Encode(map[string]literal{"x": literal(text)}); err != nil {
			t.Fatal(err)
		}

		if out.String() != want {
			t.Errorf("%q is written as %q, want %q", text, out.String(), want)
		}
	}
}
