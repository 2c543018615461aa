package kit

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxErrors is how many errors one answer lists. The library combines errors in time and memory that grow with the
// square of their number: 10,000 errors, from a request of 14 KiB, took 7 GiB of the heap and eight seconds.
const maxErrors = 100

// firstErrors returns as many errors as fit into an answer; the last one says how many more there are.
func firstErrors(errs field.ErrorList) field.ErrorList {
	if len(errs) <= maxErrors {
		return errs
	}

	more := field.Invalid(field.NewPath("spec"), field.OmitValueType{},
		fmt.Sprintf("%d more errors are not shown: correct these first", len(errs)-maxErrors))

	return append(errs[:maxErrors:maxErrors], more)
}
