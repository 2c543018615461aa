package install

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// TestStoredMeta: the kind of a stored object is what the library says, whatever its text begins with.
func TestStoredMeta(t *testing.T) {
	scheme := runtime.NewScheme()
	Install(scheme)

	codec, meta := StorageCodec(scheme), newStoredMeta(scheme)

	for _, kind := range kinds() {
		object, err := scheme.New(v1alpha1.SchemeGroupVersion.WithKind(kind))
		if err != nil {
			t.Fatal(err)
		}

		text, err := runtime.Encode(codec, object)
		if err != nil {
			t.Fatal(err)
		}

		// The text ends here, so that the library could not tell the kind.
		start := text[:strings.Index(string(text), "v1alpha1")+len(`v1alpha1",`)]
		if got, err := meta.Interpret(start); err != nil || got.Kind != kind || got.GroupVersion() != v1alpha1.SchemeGroupVersion {
			t.Errorf("%s: %v, %v", start, got, err)
		}

		// What does not end is no object, although its beginning is one.
		if got, err := runtime.Decode(codec, text[:len(text)-2]); err == nil {
			t.Errorf("%s: decoded as %v", text[:len(text)-2], got)
		}
	}

	for _, text := range []string{
		``, `{`, `{}`, `"`, `,`, `{"a":1,`, `{"kind":"OmniCluster"}`, `{"kind":"OmniCluster","apiVersion":"omni.texashpc.com/v1alpha1"}`,
		`{"kind":"OmniCluster","apiVersion":"omni.texashpc.com/v1beta1","spec":{}}`, `{"kind":"Other","apiVersion":"omni.texashpc.com/v1alpha1","spec":{}}`,
		`{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniCluster","spec":{}}`, `{ "kind":"OmniCluster","apiVersion":"omni.texashpc.com/v1alpha1"}`,
		`{"kind":"Omni\"Cluster","apiVersion":"omni.texashpc.com/v1alpha1","a":""}`,
	} {
		want, wantErr := json.DefaultMetaFactory.Interpret([]byte(text))
		got, err := meta.Interpret([]byte(text))

		if (err == nil) != (wantErr == nil) || err == nil && *got != *want {
			t.Errorf("%s: %v, %v; want %v, %v", text, got, err, want, wantErr)
		}
	}
}
