package apiserver_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver"
	"omni.texashpc.com/omni-cluster-operator/test/golden"
)

// TestStoredBytes compares the bytes that etcd receives for an object of every kind with committed files: for an
// object with every field set, and for a request that leaves fields to their defaults and has empty lists and a
// free-form block. A changed file means that a stored object reads differently.
func TestStoredBytes(t *testing.T) {
	config, err := apiserver.NewConfig()
	if err != nil {
		t.Fatal(err)
	}

	for _, kind := range kinds {
		name := strings.ToLower(kind)

		t.Run(kind+"/full", func(t *testing.T) {
			full := golden.JSON(t, filepath.Join("..", "apis", "omni", "v1alpha1", "testdata", name+".json"))
			expectStored(t, config.StorageCodec(), kind, full, full)
		})

		t.Run(kind+"/request", func(t *testing.T) {
			sent := golden.JSON(t, filepath.Join("testdata", "stored", name+".request.json"))
			file := filepath.Join("testdata", "stored", name+".stored.json")

			golden.UpdateJSON(t, file, encodeStored(t, config.StorageCodec(), decodeRequest(t, kind, sent)))
			expectStored(t, config.StorageCodec(), kind, sent, golden.JSON(t, file))
		})
	}
}

// expectStored stores a request, reads it back as the storage does, and stores it again.
func expectStored(t *testing.T, codec runtime.Codec, kind string, sent, want []byte) {
	t.Helper()

	stored := encodeStored(t, codec, decodeRequest(t, kind, sent))
	if diff := cmp.Diff(string(want), string(stored)); diff != "" {
		t.Errorf("stored bytes (-golden +got):\n%s", diff)
	}

	read := newObject(t, kind)
	if _, _, err := codec.Decode(stored, nil, read); err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(string(want), string(encodeStored(t, codec, read))); diff != "" {
		t.Errorf("bytes after reading and storing again (-golden +got):\n%s", diff)
	}
}

// TestStagesAreStoredAsSent: no default goes into a stage. kubectl apply patches the stages as one value, so a default in
// an element would be a difference each time.
func TestStagesAreStoredAsSent(t *testing.T) {
	const (
		stages = `[{"name":"canary","clusterSelector":{"matchLabels":{"tier":"canary"}}},` +
			`{"name":"stage","clusterSelector":{"matchLabels":{"tier":"stage"}},"maxConcurrent":3,"soakTime":"48h","minQualified":"50%","promotion":"Manual",` +
			`"windows":[{"days":["Sat","Sun"],"start":"02:00","duration":"4h","timeZone":"Europe/Berlin"}]},{"name":"prod"}]`
		object = `{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniRolloutPolicy","metadata":{"name":"a"},"spec":{"clusterSelector":{},"stages":` + stages + `}}`
	)

	config, err := apiserver.NewConfig()
	if err != nil {
		t.Fatal(err)
	}

	var stored struct {
		Spec struct {
			Stages json.RawMessage `json:"stages"`
		} `json:"spec"`
	}

	if err := json.Unmarshal(encodeStored(t, config.StorageCodec(), decodeRequest(t, "OmniRolloutPolicy", []byte(object))), &stored); err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(stages, string(stored.Spec.Stages)); diff != "" {
		t.Errorf("stages (-sent +stored):\n%s", diff)
	}
}

// newObject is an empty object as the storage of the kind makes it.
func newObject(t *testing.T, kind string) runtime.Object {
	t.Helper()

	scheme, err := apiserver.NewScheme()
	if err != nil {
		t.Fatal(err)
	}

	obj, err := scheme.New(schema.GroupVersionKind{Group: v1alpha1.GroupName, Version: runtime.APIVersionInternal, Kind: kind})
	if err != nil {
		t.Fatal(err)
	}

	return obj
}

// decodeRequest reads a request as the handlers do, with fieldValidation=Strict.
func decodeRequest(t *testing.T, kind string, sent []byte) runtime.Object {
	t.Helper()

	scheme, err := apiserver.NewScheme()
	if err != nil {
		t.Fatal(err)
	}

	factory := serializer.NewCodecFactory(scheme)
	json, _ := runtime.SerializerInfoForMediaType(factory.SupportedMediaTypes(), runtime.ContentTypeJSON)
	internal := schema.GroupVersion{Group: v1alpha1.GroupName, Version: runtime.APIVersionInternal}

	obj := newObject(t, kind)
	if _, _, err := factory.DecoderToVersion(json.StrictSerializer, internal).Decode(sent, nil, obj); err != nil {
		t.Fatal(err)
	}

	return obj
}

func encodeStored(t *testing.T, codec runtime.Codec, obj runtime.Object) []byte {
	t.Helper()

	data, err := runtime.Encode(codec, obj)
	if err != nil {
		t.Fatal(err)
	}

	return data
}
