package kit

import (
	"context"
	"fmt"
	"math"
	"strings"

	"google.golang.org/grpc/codes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
)

// maxSpec is the largest spec, in bytes of JSON. Patches let an object grow beyond what one request
// can hold; what lies between this and etcd's 1.5 MiB is room for metadata and status.
const maxSpec = 1 << 20

// maxSpecDepth is how deep a spec may be nested. The kinds' rules allow their free-form blocks less; this one also holds
// while an object is being deleted, when those do not run. JSON that is nested 10,000 levels deep can be written, but with
// what is stored around it not be read again, and then nobody can list the kind.
const maxSpecDepth = 256

// maxSpecValues is how many maps, lists, keys and values a spec may have: many patches, each within what a request may have,
// would else make one that every later write has to hold in memory, at a kilobyte and more for each value.
const maxSpecValues = 50_000

// etcdTooLarge is etcd's refusal. The store passes it on as an error of its own type, so that only
// the text is left to know it by.
const etcdTooLarge = "etcdserver: request is too large"

// specTooLarge says so if the object's spec is too large, nested too deep, or of too many values to be stored.
func (s strategy[T]) specTooLarge(obj T) field.ErrorList {
	encoded, err := s.descriptor.Spec.encode(obj)
	if err != nil {
		return field.ErrorList{field.InternalError(field.NewPath("spec"), err)}
	}

	if validation.Depth(encoded) > maxSpecDepth {
		return field.ErrorList{field.Invalid(field.NewPath("spec"), field.OmitValueType{},
			fmt.Sprintf("is nested deeper than %d levels: make it flatter", maxSpecDepth))}
	}

	limits := foreign.Limits{Bytes: math.MaxInt, Depth: maxSpecDepth, Nodes: maxSpecValues, Expanded: math.MaxInt}
	if err := foreign.Check(context.Background(), encoded, limits); err != nil { // JSON, which waits for nothing
		return field.ErrorList{field.Invalid(field.NewPath("spec"), field.OmitValueType{},
			fmt.Sprintf("has more than %d values: read parts of it with valueFrom", maxSpecValues))}
	}

	if len(encoded) <= maxSpec {
		return nil
	}

	return field.ErrorList{{
		Type:     field.ErrorTypeTooLong,
		Field:    "spec",
		BadValue: "",
		Detail: fmt.Sprintf("has %d KiB, at most %d KiB fit: read parts of it with valueFrom",
			(len(encoded)+1023)>>10, maxSpec>>10),
	}}
}

// tooLarge is etcd's refusal of a large object. To clients it is the status; the library's handlers know it by its code and
// text, and write the object again without managed fields before they give up.
type tooLarge struct{ *apierrors.StatusError }

// Code implements the interface by which the handlers know an error of etcd.
func (tooLarge) Code() codes.Code { return codes.InvalidArgument }

// Error is etcd's text, to the letter.
func (tooLarge) Error() string { return etcdTooLarge }

// Unwrap returns the status.
func (t tooLarge) Unwrap() error { return t.StatusError }

// explainTooLarge replaces etcd's refusal of a large object, which clients would take for a fault of
// the server. Only an object whose metadata or status is huge gets that far.
func explainTooLarge(err error) error {
	if err == nil || !strings.Contains(err.Error(), etcdTooLarge) {
		return err
	}

	return tooLarge{apierrors.NewRequestEntityTooLargeError(
		"spec, metadata and status together are more than etcd stores in one object (1.5 MiB by default)")}
}
