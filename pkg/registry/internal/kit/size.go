package kit

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxSpec is the largest spec, in bytes of JSON. Patches let an object grow beyond what one request
// can hold; what lies between this and etcd's 1.5 MiB is room for metadata and status.
const maxSpec = 1 << 20

// etcdTooLarge is etcd's refusal. The store passes it on as an error of its own type, so that only
// the text is left to know it by.
const etcdTooLarge = "etcdserver: request is too large"

// specTooLarge says so if the object's spec is too large to be stored.
func (s strategy[T]) specTooLarge(obj T) field.ErrorList {
	encoded, err := s.encodedSpec(obj)
	if err != nil {
		return field.ErrorList{field.InternalError(field.NewPath("spec"), err)}
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

// explainTooLarge replaces etcd's refusal of a large object, which clients would take for a fault of
// the server. Only an object whose metadata or status is huge gets that far.
func explainTooLarge(err error) error {
	if err == nil || !strings.Contains(err.Error(), etcdTooLarge) {
		return err
	}

	return apierrors.NewRequestEntityTooLargeError(
		"spec, metadata and status together are more than etcd stores in one object (1.5 MiB by default)")
}
