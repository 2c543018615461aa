package v1alpha1_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// release is an OmniHelmRelease with these values.
const release = `{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniHelmRelease","metadata":{"name":"a"},"spec":{
	"clusterRef":{"name":"c"},"kubeconfigSecretRef":{"name":"k"},"chart":{"chart":"x","values":%s}}}`

// TestFreeFormKeepsNumbers sends blocks through everything that a write goes through: decoding,
// storing, reading back, answering.
func TestFreeFormKeepsNumbers(t *testing.T) {
	_, factory := codecs(t)
	codec := factory.LegacyCodec(v1alpha1.SchemeGroupVersion)

	for _, tc := range []struct{ name, text, want string }{
		{"integers", `{"a":1048576,"b":9007199254740993,"c":-9223372036854775809,"d":0}`, ""},
		{"text that looks like a number", `{"a":"1.0","b":"1e3","c":"007"}`, ""},
		{"fractions and exponents", `{"a":1.0,"b":1e3,"c":1E+3,"d":-0,"e":0.10000000000000000000001,"f":1e308,"g":1e-400}`, ""},
		{"other types", `{"a":null,"b":true,"c":[],"d":{},"e":[1,[2.50]]}`, ""},
		{"order of keys", `{"b":1,"a":2}`, ""},
		{"white space", " {\n \"a\" : [ 1 ,\t2 ] } ", `{"a":[1,2]}`},
		{"empty", `{}`, ""},
		{"other scripts", `{"ä":"日本 \u00e9"}`, ""},
		{"surrogate escapes", `{"\ud83d\ude00":"a\uD83D\uDE00\n\"<\u00e9"}`, `{"😀":"a😀\n\"\u003cé"}`},
		{"half a surrogate", `{"a":"\ud83d"}`, `{"a":"�"}`},
		{"no UTF-8", "{\"a\xff\":\"b\xc3\"}", `{"a�":"b�"}`},
		{"escaped backslash before ud", `{"a":"\\ud83d"}`, ""},
		{"characters that JSON writers escape for HTML", `{"a":"<&>"}`, `{"a":"\u003c\u0026\u003e"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := tc.want
			if want == "" {
				want = tc.text
			}

			decoded, err := runtime.Decode(codec, fmt.Appendf(nil, release, tc.text))
			if err != nil {
				t.Fatal(err)
			}

			first := decoded.(*v1alpha1.OmniHelmRelease).Spec.Chart.Values.Raw
			if string(first) != want {
				t.Errorf("after decoding %s, want %s", first, want)
			}

			stored, err := runtime.Encode(codec, decoded)
			if err != nil {
				t.Fatal(err)
			}

			if !bytes.Contains(stored, []byte(`"values":`+want)) {
				t.Errorf("stored bytes are %s, want %s", stored, want)
			}

			read, err := runtime.Decode(codec, stored)
			if err != nil {
				t.Fatal(err)
			}

			// A block that reads back differently would count as a changed spec.
			if again := read.(*v1alpha1.OmniHelmRelease).Spec.Chart.Values.Raw; !bytes.Equal(again, first) {
				t.Errorf("reads back as %s, was %s", again, first)
			}
		})
	}
}

func TestFreeFormRefusesAnythingButObjects(t *testing.T) {
	_, factory := codecs(t)
	codec := factory.LegacyCodec(v1alpha1.SchemeGroupVersion)

	for _, text := range []string{`[1]`, `"text"`, `5`, `true`} {
		_, err := runtime.Decode(codec, fmt.Appendf(nil, release, text))
		if err == nil || !strings.Contains(err.Error(), "must be an object") {
			t.Errorf("%s: got %v", text, err)
		}
	}

	decoded, err := runtime.Decode(codec, fmt.Appendf(nil, release, "null"))
	if err != nil {
		t.Fatal(err)
	}

	if values := decoded.(*v1alpha1.OmniHelmRelease).Spec.Chart.Values; values != nil {
		t.Errorf("null is %s, want unset", values.Raw)
	}
}

// The library panics while it computes field ownership of a number that no 64-bit float can hold.
func TestFreeFormRefusesNumbersOutOfRange(t *testing.T) {
	_, factory := codecs(t)
	codec := factory.LegacyCodec(v1alpha1.SchemeGroupVersion)

	for _, tc := range []struct{ text, number string }{
		{`{"a":1e400}`, "1e400"},
		{`{"a":[{"b":[true,null,-1E+309]}],"c":1}`, "-1E+309"},
		{`{"a\\\"":"1e400","b":1e400}`, "1e400"},
		{`{"a":` + strings.Repeat("9", 310) + `}`, strings.Repeat("9", 40)},
	} {
		_, err := runtime.Decode(codec, fmt.Appendf(nil, release, tc.text))
		if want := "number " + tc.number + " is too large: quote it"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", tc.text, err, want)
		}
	}

	for _, text := range []string{`{"1e400":"1e400"}`, `{"a":"\"1e400","b":"\\","c":"-1e999"}`, `{"a":-0.0e0,"b":[]}`} {
		if _, err := runtime.Decode(codec, fmt.Appendf(nil, release, text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestFreeFormZeroValueIsAnEmptyObject(t *testing.T) {
	data, err := json.Marshal(v1alpha1.FreeForm{})
	if err != nil || string(data) != "{}" {
		t.Errorf("got %s, %v", data, err)
	}
}

// Omni treats an unset list ("leave it") and an empty one ("remove all") differently.
func TestUnsetAndEmptyListsStayApart(t *testing.T) {
	_, factory := codecs(t)
	codec := factory.LegacyCodec(v1alpha1.SchemeGroupVersion)

	const object = `{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"%s","metadata":{"name":"a"},"spec":{%s}}`

	lists := func(obj runtime.Object) [][]string {
		switch obj := obj.(type) {
		case *v1alpha1.OmniCluster:
			return [][]string{obj.Spec.SystemExtensions, obj.Spec.KernelArgs}
		case *v1alpha1.OmniControlPlane:
			return [][]string{obj.Spec.SystemExtensions, obj.Spec.KernelArgs}
		case *v1alpha1.OmniWorkers:
			return [][]string{obj.Spec.SystemExtensions, obj.Spec.KernelArgs}
		case *v1alpha1.OmniMachine:
			return [][]string{obj.Spec.SystemExtensions, obj.Spec.KernelArgs}
		default:
			t.Fatalf("%T has no such lists", obj)

			return nil
		}
	}

	for _, kind := range []string{"OmniCluster", "OmniControlPlane", "OmniWorkers", "OmniMachine"} {
		for _, tc := range []struct {
			name, spec string
			unset      bool
		}{
			{"unset", ``, true},
			{"null", `"systemExtensions":null,"kernelArgs":null`, true},
			{"empty", `"systemExtensions":[],"kernelArgs":[]`, false},
		} {
			t.Run(kind+" "+tc.name, func(t *testing.T) {
				decoded, err := runtime.Decode(codec, fmt.Appendf(nil, object, kind, tc.spec))
				if err != nil {
					t.Fatal(err)
				}

				// Once more through the stored form.
				stored, err := runtime.Encode(codec, decoded)
				if err != nil {
					t.Fatal(err)
				}

				if got := !bytes.Contains(stored, []byte(`"systemExtensions":[],"kernelArgs":[]`)); got != tc.unset {
					t.Errorf("stored as %s", stored)
				}

				again, err := runtime.Decode(codec, stored)
				if err != nil {
					t.Fatal(err)
				}

				for _, list := range append(lists(decoded), lists(again)...) {
					if (list == nil) != tc.unset {
						t.Errorf("got %#v", list)
					}
				}
			})
		}
	}
}
