package references_test

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/admission/references"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// kinds are all kinds.
func kinds() []runtime.Object {
	return []runtime.Object{
		&v1alpha1.OmniConnection{}, &v1alpha1.OmniCluster{}, &v1alpha1.OmniControlPlane{}, &v1alpha1.OmniWorkers{},
		&v1alpha1.OmniMachine{}, &v1alpha1.OmniKubeconfigExport{}, &v1alpha1.OmniSecretSync{}, &v1alpha1.OmniHelmRelease{},
	}
}

// notRead are fields with a Secret in their name whose content no object uses.
var notRead = []string{
	"spec.targetSecretRef", // is written
	"spec.secretTemplate",  // metadata of what is written
}

// TestEveryReferenceIsListed finds the fields by their types and names, so that it covers every kind and fields that
// are added later.
func TestEveryReferenceIsListed(t *testing.T) {
	for _, object := range kinds() {
		kind := reflect.TypeOf(object).Elem().Name()

		var want []references.Reference

		fill(t, reflect.ValueOf(object).Elem().FieldByName("Spec"), "spec", &want)

		got := references.Of(object)
		if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b references.Reference) bool { return a.Field < b.Field }),
			cmpopts.IgnoreFields(references.Reference{}, "Destination")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}

		if references.Of(nil) != nil {
			t.Error("nothing has references")
		}
	}
}

// fill sets every field of a value, and gives every reference to a Secret or ConfigMap a different name.
func fill(t *testing.T, value reflect.Value, path string, found *[]references.Reference) {
	t.Helper()

	reference := func(resource string, fields ...string) {
		added := references.Reference{Field: path, Resource: resource}
		for i, target := range []*string{&added.Name, &added.Key}[:len(fields)] {
			*target = fmt.Sprintf("n%d-%d", len(*found), i)
			value.FieldByName(fields[i]).SetString(*target)
		}

		*found = append(*found, added)
	}

	about := regexp.MustCompile(`(?i)secret|configmap`).MatchString(path[strings.LastIndex(path, ".")+1:])

	for _, known := range notRead {
		if path == known {
			return
		}
	}

	switch value.Interface().(type) {
	case v1alpha1.SecretKeyReference:
		reference("secrets", "Name", "Key")
	case v1alpha1.KeyReference:
		if strings.HasSuffix(path, ".configMapKeyRef") {
			reference("configmaps", "Name", "Key")
		} else {
			reference("secrets", "Name", "Key")
		}
	case v1alpha1.HelmValuesReference:
		value.FieldByName("Kind").SetString(string(v1alpha1.ValuesSecret))
		reference("secrets", "Name", "Key")
	case v1alpha1.LocalObjectReference:
		if about {
			reference("secrets", "Name")
		}
	case v1alpha1.SecretKeyMapping: // of the source, which is the last reference
		(*found)[len(*found)-1].Key = "from"
		value.FieldByName("From").SetString("from")
	default:
		if strings.HasSuffix(value.Type().Name(), "Reference") || about && value.Kind() != reflect.Pointer {
			t.Errorf("%s (%s) may be a reference: list it in Of, or in notRead", path, value.Type())
		}

		descend(t, value, path, found)
	}
}

func descend(t *testing.T, value reflect.Value, path string, found *[]references.Reference) {
	t.Helper()

	switch value.Kind() { // the rest holds nothing
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(t, value.Elem(), path, found)
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Struct {
			value.Set(reflect.MakeSlice(value.Type(), 1, 1))
			fill(t, value.Index(0), path+"[0]", found)
		}
	case reflect.Struct:
		for i := range value.NumField() {
			field := value.Type().Field(i)
			if !field.IsExported() {
				continue
			}

			at := path
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
				at += "." + name
			}

			fill(t, value.Field(i), at, found)
		}
	}
}
