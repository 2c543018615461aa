package v1alpha1_test

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/install"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/golden"
)

func codecs(t *testing.T) (*runtime.Scheme, serializer.CodecFactory) {
	t.Helper()

	scheme := runtime.NewScheme()
	install.Install(scheme)

	return scheme, serializer.NewCodecFactory(scheme, serializer.EnableStrict)
}

func kinds() []string {
	return []string{
		"OmniConnection", "OmniCluster", "OmniControlPlane", "OmniWorkers", "OmniMachine",
		"OmniKubeconfigExport", "OmniSecretSync", "OmniHelmRelease", "OmniRolloutPolicy",
	}
}

// fullObject is an object of the kind with every field set.
func fullObject(t *testing.T, scheme *runtime.Scheme, kind string) runtime.Object {
	t.Helper()

	obj, err := roundtrip.CompatibilityTestObject(scheme, v1alpha1.SchemeGroupVersion.WithKind(kind), map[reflect.Type]roundtrip.FillFunc{
		reflect.TypeFor[*v1alpha1.FreeForm](): func(_ string, _ int, value any) {
			value.(*v1alpha1.FreeForm).Raw = []byte(`{"number":9007199254740993,"text":"1.0"}`)
		},
		reflect.TypeFor[*intstr.IntOrString](): func(_ string, i int, value any) {
			*value.(*intstr.IntOrString) = intstr.FromInt32(int32(i))
		},
		reflect.TypeFor[*metav1.Time](): func(_ string, i int, value any) {
			value.(*metav1.Time).Time = time.Date(2000+i, 1, 1, 1, 1, 1, 0, time.UTC)
		},
		reflect.TypeFor[*metav1.FieldsV1](): func(_ string, _ int, value any) {
			value.(*metav1.FieldsV1).SetRawString("{}")
		},
	})
	if err != nil {
		t.Fatal(err)
	}

	return obj
}

// TestGoldenBytes holds the JSON form of every field of every kind against committed bytes: as written
// by the server, and as read, defaulted, and written again. A changed file is a changed API: fields may be added, none may
// be renamed, retyped or dropped.
func TestGoldenBytes(t *testing.T) {
	scheme, factory := codecs(t)
	codec := factory.LegacyCodec(v1alpha1.SchemeGroupVersion)

	for _, kind := range kinds() {
		t.Run(kind, func(t *testing.T) {
			file := filepath.Join("testdata", strings.ToLower(kind)+".json")

			written, err := runtime.Encode(codec, fullObject(t, scheme, kind))
			if err != nil {
				t.Fatal(err)
			}

			golden.UpdateJSON(t, file, written)

			want := golden.JSON(t, file)
			if diff := cmp.Diff(string(want), string(written)); diff != "" {
				t.Errorf("written bytes (-golden +got):\n%s", diff)
			}

			decoded, err := runtime.Decode(codec, want)
			if err != nil {
				t.Fatal(err)
			}

			again, err := runtime.Encode(codec, decoded)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(string(want), string(again)); diff != "" {
				t.Errorf("bytes after a round trip (-golden +got):\n%s", diff)
			}
		})
	}
}
