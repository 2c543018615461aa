package install

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/applyconfiguration"
)

// emptyField is a field of a spec that holds a map, a list or an object.
type emptyField struct {
	// path leads to the field: names of JSON fields, or [] for the only element of a list.
	path []string
	// empty is its empty value as JSON.
	empty string
	// optional is whether it is left out if it is not set. Some objects are always written.
	optional bool
}

func (f emptyField) String() string { return strings.Join(f.path, ".") }

// emptyFields finds the maps, lists and objects in a type, at any depth.
func emptyFields(of reflect.Type, path []string) []emptyField {
	var found []emptyField

	for i := range of.NumField() {
		field := of.Field(i)

		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && field.Anonymous {
			found = append(found, emptyFields(field.Type, path)...)

			continue
		}

		here := append(append([]string{}, path...), name)
		elem := field.Type
		kind := emptyField{path: here, optional: elem.Kind() != reflect.Struct && options != ""}

		if elem.Kind() == reflect.Pointer {
			elem = elem.Elem()
		}

		switch {
		case elem == reflect.TypeFor[metav1.Time]() || elem == reflect.TypeFor[intstr.IntOrString]() || elem == reflect.TypeFor[[]byte]():
			continue
		case elem.Kind() == reflect.Map || elem.Kind() == reflect.Struct:
			kind.empty = "{}"
		case elem.Kind() == reflect.Slice:
			kind.empty, here, elem = "[]", append(here, "[]"), elem.Elem()
		default:
			continue
		}

		found = append(found, kind)
		if elem.Kind() == reflect.Struct && elem != reflect.TypeFor[v1alpha1.FreeForm]() {
			found = append(found, emptyFields(elem, here)...)
		}
	}

	return found
}

// within writes the value at a path of a JSON document.
func within(path []string, value string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == "[]" {
			value = "[" + value + "]"
		} else {
			value = fmt.Sprintf("{%q:%s}", path[i], value)
		}
	}

	return value
}

// at reads what a JSON document has at a path.
func at(t *testing.T, document []byte, path []string) (any, bool) {
	t.Helper()

	var value any
	if err := json.Unmarshal(document, &value); err != nil {
		t.Fatal(err)
	}

	for _, step := range path {
		switch parent := value.(type) {
		case map[string]any:
			member, set := parent[step]
			if !set {
				return nil, false
			}

			value = member
		case []any:
			value = parent[0]
		default:
			t.Fatalf("%s in %T", step, value)
		}
	}

	return value, true
}

// TestEmptyIsKept: a map, a list or an object that was written empty comes back empty, and one that was left out stays out, for every
// field of every spec, from the storage and from an apply configuration. Otherwise a tool that compares its manifest with the object sees a
// difference for ever. Custom resources behave the same.
func TestEmptyIsKept(t *testing.T) {
	scheme := runtime.NewScheme()
	Install(scheme)

	factory := runtimeserializer.NewCodecFactory(scheme, runtimeserializer.EnableStrict)
	request, storage := factory.UniversalDecoder(schema.GroupVersion{Group: v1alpha1.GroupName, Version: runtime.APIVersionInternal}), StorageCodec(scheme)
	count := 0

	for _, kind := range kinds() {
		gvk := v1alpha1.SchemeGroupVersion.WithKind(kind)
		spec, _ := reflect.TypeOf(mustNew(t, scheme, gvk)).Elem().FieldByName("Spec")

		stored := func(document string) []byte {
			object, err := runtime.Decode(request, []byte(document))
			if err != nil {
				t.Fatalf("%s: %v", document, err)
			}

			for range 2 {
				text, err := runtime.Encode(storage, object.DeepCopyObject())
				if err != nil {
					t.Fatal(err)
				}

				if object, err = runtime.Decode(storage, text); err != nil {
					t.Fatal(err)
				}

				document = string(text)
			}

			return []byte(document)
		}
		applied := func(document string) []byte {
			configuration := applyconfiguration.ForKind(gvk)
			if err := json.Unmarshal([]byte(document), configuration); err != nil {
				t.Fatalf("%s: %v", document, err)
			}

			text, err := json.Marshal(configuration)
			if err != nil {
				t.Fatal(err)
			}

			return text
		}

		for _, field := range emptyFields(spec.Type, []string{"spec"}) {
			count++

			parent := field.path[:len(field.path)-1]

			for way, through := range map[string]func(string) []byte{"stored": stored, "applied": applied} {
				head := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,`, v1alpha1.SchemeGroupVersion, kind)
				written := through(head + within(field.path, field.empty)[1:])

				value, set := at(t, written, field.path)
				if list, isList := value.([]any); !set || value == nil || isList && len(list) > 0 {
					t.Errorf("%s: %s: %s comes back as %v in %s", kind, way, field, value, written)
				}

				left := through(head + within(parent, "{}")[1:])
				if value, set := at(t, left, field.path); set && field.optional {
					t.Errorf("%s: %s: %s was left out, and comes back as %v", kind, way, field, value)
				}
			}
		}
	}

	if count < 80 {
		t.Errorf("only %d fields were found", count)
	}
}

func mustNew(t *testing.T, scheme *runtime.Scheme, kind schema.GroupVersionKind) runtime.Object {
	t.Helper()

	object, err := scheme.New(kind)
	if err != nil {
		t.Fatal(err)
	}

	return object
}
