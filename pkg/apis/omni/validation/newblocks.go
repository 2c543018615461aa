package validation

import (
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// validateNewBlocks checks size and depth of the free-form blocks that a spec has and the old one has not. Blocks that were
// stored under older limits stay valid.
func validateNewBlocks(spec, old any) field.ErrorList {
	stored := map[string]bool{}
	eachBlock(reflect.ValueOf(old), func(block v1alpha1.FreeForm) { stored[string(block.Raw)] = true })

	var errs field.ErrorList

	eachBlock(reflect.ValueOf(spec), func(block v1alpha1.FreeForm) {
		if !stored[string(block.Raw)] {
			errs = append(errs, validateFreeForm(field.NewPath("spec"), "leave its blocks as they are, the object is being deleted", block)...)
		}
	})

	return errs
}

// eachBlock calls visit with each free-form block in a value.
func eachBlock(value reflect.Value, visit func(v1alpha1.FreeForm)) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			eachBlock(value.Elem(), visit)
		}
	case reflect.Slice:
		for i := range value.Len() {
			eachBlock(value.Index(i), visit)
		}
	case reflect.Struct:
		if block, isBlock := reflect.TypeAssert[v1alpha1.FreeForm](value); isBlock {
			visit(block)

			return
		}

		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				eachBlock(value.Field(i), visit)
			}
		}
	default:
	}
}
