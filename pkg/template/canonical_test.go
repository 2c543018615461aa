package template

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"go.yaml.in/yaml/v3"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// freeForm reads a block the way the API does.
func freeForm(t testing.TB, raw string) v1alpha1.FreeForm {
	t.Helper()

	return parse[v1alpha1.FreeForm](t, []byte(raw))
}

func TestCanonicalText(t *testing.T) {
	for name, test := range map[string]struct {
		blocks []string
		want   string
	}{
		"empty":         {[]string{`{}`}, "{}\n"},
		"keys sorted":   {[]string{`{"b":1,"a":{"d":true,"c":null}}`}, "a:\n  c: null\n  d: true\nb: 1\n"},
		"order of list": {[]string{`{"l":["b","a",{"z":1,"y":2}]}`}, "l:\n  - b\n  - a\n  - \"y\": 2\n    z: 1\n"},
		"empty inside":  {[]string{`{"a":{},"b":[],"c":""}`}, "a: {}\nb: []\nc: \"\"\n"},
		"two objects":   {[]string{`{"a":1}`, `{"b":2}`}, "a: 1\n---\nb: 2\n"},
		"numbers": {
			[]string{`{"a":1048576,"b":9007199254740993,"c":1.0,"d":1e3,"e":-0,"f":1E+2,"g":18446744073709551616,"h":0.10}`},
			"a: 1048576\nb: 9007199254740993\nc: 1.0\nd: 1e3\ne: -0\nf: 1E+2\ng: 18446744073709551616\nh: 0.10\n",
		},
		"strings that look like something else": {
			[]string{`{"a":"1.0","b":"yes","c":"null","d":"0x1F","e":"12:30","f":"=","g":"<<","h":"a: b","i":"NaN","j":"2026-01-01"}`},
			"a: \"1.0\"\nb: \"yes\"\nc: \"null\"\nd: \"0x1F\"\ne: \"12:30\"\nf: \"=\"\ng: \"<<\"\nh: \"a: b\"\ni: \"NaN\"\nj: \"2026-01-01\"\n",
		},
		"keys that look like something else": {
			[]string{`{"on":1,"1":2,"~":3,"":4,"a:":5}`},
			"\"\": 4\n\"1\": 2\n\"a:\": 5\n\"on\": 1\n\"~\": 3\n",
		},
		"plain strings": {
			[]string{`{"a":"/dev/sda","b":"docker.io/library/nginx:1.29@sha256","c":"siderolabs/iscsi-tools"}`},
			"a: /dev/sda\nb: docker.io/library/nginx:1.29@sha256\nc: siderolabs/iscsi-tools\n",
		},
		"lines": {
			[]string{`{"a":"x\ny\n","b":"x\ny","c":" x\ny","d":"x \ny"}`},
			"a: |\n  x\n  y\nb: |-\n  x\n  y\nc: \" x\\ny\"\nd: \"x \\ny\"\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var blocks []v1alpha1.FreeForm
			for _, raw := range test.blocks {
				blocks = append(blocks, freeForm(t, raw))
			}

			got, err := canonicalText(newBudget(), blocks...)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
		})
	}
}

// Every word that some reader of YAML takes for something else is quoted, in whatever letters.
func TestCanonicalTextOfWords(t *testing.T) {
	for _, word := range []string{"true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"} {
		for _, written := range []string{word, strings.ToUpper(word), strings.ToUpper(word[:1]) + word[1:]} {
			got, err := canonicalText(newBudget(), freeForm(t, `{"k":"`+written+`"}`))
			if err != nil {
				t.Fatal(err)
			}

			if want := `k: "` + written + "\"\n"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}

		if got, err := canonicalText(newBudget(), freeForm(t, `{"k":"`+word+`x"}`)); err != nil || got != "k: "+word+"x\n" {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

func TestCanonicalTextOfBrokenBlock(t *testing.T) {
	for _, raw := range []string{`{`, `[1]`, `{"a":1}{"b":2}`, `{"a":01}`} {
		if text, err := canonicalText(newBudget(), v1alpha1.FreeForm{Raw: []byte(raw)}); err == nil {
			t.Errorf("%s gives %q, want an error", raw, text)
		}
	}
}

// Whatever JSON comes in, a YAML reader gets the same content back, and the text does not depend on key order.
func FuzzCanonicalText(f *testing.F) {
	for _, text := range awkwardTexts() {
		encoded, err := json.Marshal(map[string]any{text: []any{text, map[string]string{"k": text}}, "b": text})
		if err != nil {
			f.Fatal(err)
		}

		f.Add(encoded)
	}

	f.Fuzz(func(t *testing.T, raw []byte) {
		var block v1alpha1.FreeForm
		if json.Unmarshal(raw, &block) != nil {
			return // not an object: refused before it gets here
		}

		text, err := canonicalText(newBudget(), block)
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}

		var node yaml.Node
		if err := yaml.Unmarshal([]byte(text), &node); err != nil {
			t.Fatalf("%s is written as %q, which YAML cannot read: %v", raw, text, err)
		}

		want, err := decodeBlock(block)
		if err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(want, contentOf(node.Content[0])); diff != "" {
			t.Errorf("%s is written as %q, read back (-want +got):\n%s", raw, text, diff)
		}
	})
}

// contentOf reads a node back as JSON content. A plain scalar that is no keyword must have been a number.
func contentOf(node *yaml.Node) any {
	switch node.Kind {
	case yaml.MappingNode:
		content := map[string]any{}
		for i := 0; i < len(node.Content); i += 2 {
			content[node.Content[i].Value] = contentOf(node.Content[i+1])
		}

		return content
	case yaml.SequenceNode:
		content := []any{}
		for _, element := range node.Content {
			content = append(content, contentOf(element))
		}

		return content
	default:
		switch {
		case node.Tag == "!!str" && (node.Style != 0 || isPlain(node.Value)):
			return node.Value
		case node.Tag == "!!bool":
			return node.Value == "true"
		case node.Tag == "!!null":
			return nil
		default:
			return json.Number(node.Value)
		}
	}
}

func TestNumbersReachThePatchAsWritten(t *testing.T) {
	in := loadInput(t, "minimal")
	block := freeForm(t, `{"machine":{"sysctls":{"a":"1.0"},"kubelet":{"extraConfig":{"maxPods":1048576,"big":9007199254740993,"one":1.0,"exp":1e3}}}}`)
	in.Cluster.Spec.Patches = []v1alpha1.Patch{{Name: "numbers", Inline: &block}}

	want := `machine:
  kubelet:
    extraConfig:
      big: 9007199254740993
      exp: 1e3
      maxPods: 1048576
      one: 1.0
  sysctls:
    a: "1.0"
`

	for _, res := range translate(t, render(t, in, nil)) {
		patch, ok := res.(*omni.ConfigPatch)
		if !ok {
			continue
		}

		data, err := patch.TypedSpec().Value.GetUncompressedData()
		if err != nil {
			t.Fatal(err)
		}
		defer data.Free()

		if diff := cmp.Diff(want, string(data.Data())); diff != "" {
			t.Errorf("data of %s (-want +got):\n%s", patch.Metadata().ID(), diff)
		}

		return
	}

	t.Fatal("the patch is missing")
}
