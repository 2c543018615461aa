package v1alpha1_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// What is stored reads back as what would be stored again. Where it does not, an identical apply counts as a change of the
// spec, every time: the empty maps and lists of a manifest are not in the object that it is compared with.
func TestEmptyMembersSettle(t *testing.T) {
	for _, spec := range []any{
		&v1alpha1.OmniConnectionSpec{}, &v1alpha1.OmniClusterSpec{}, &v1alpha1.OmniControlPlaneSpec{}, &v1alpha1.OmniWorkersSpec{},
		&v1alpha1.OmniMachineSpec{}, &v1alpha1.OmniKubeconfigExportSpec{}, &v1alpha1.OmniSecretSyncSpec{}, &v1alpha1.OmniHelmReleaseSpec{},
	} {
		for _, length := range []int{0, 1} {
			value := reflect.ValueOf(spec).Elem()
			value.SetZero()
			setEmpty(value, length)

			first, err := json.Marshal(spec)
			if err != nil {
				t.Fatal(err)
			}

			value.SetZero()

			if err := json.Unmarshal(first, spec); err != nil {
				t.Fatal(err)
			}

			if second, err := json.Marshal(spec); err != nil || string(second) != string(first) {
				t.Errorf("%T, lists of %d: %v\nfirst  %s\nsecond %s", spec, length, err, first, second)
			}
		}
	}
}

// setEmpty makes every map empty instead of unset, and every list as long.
func setEmpty(value reflect.Value, length int) {
	switch value.Kind() {
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		setEmpty(value.Elem(), length)
	case reflect.Map:
		value.Set(reflect.MakeMap(value.Type()))
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), length, length))

		for i := range length {
			setEmpty(value.Index(i), length)
		}
	case reflect.Struct:
		if value.Type() == reflect.TypeFor[v1alpha1.FreeForm]() {
			return
		}

		for i := range value.NumField() {
			setEmpty(value.Field(i), length)
		}
	default:
	}
}
