package kit

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
)

// maxOwnershipDepth is how deep an entry of managedFields may be nested: what the deepest spec needs, which is a level
// for each of its own, one for spec, and one for the empty set at the end of each path.
const maxOwnershipDepth = validation.MaxSpecDepth + 2

// etcdTooLarge is the text of etcd's error. The store passes that error on with a type of its own, so only the text
// identifies it.
const etcdTooLarge = "etcdserver: request is too large"

// specTooLarge returns an error if the object's spec is too large to be stored, nested too deep, or has too many
// values.
func (s strategy[T]) specTooLarge(obj T) field.ErrorList {
	encoded, err := s.descriptor.Spec.encode(obj)
	if err != nil {
		return field.ErrorList{field.InternalError(field.NewPath("spec"), err)}
	}

	return validation.ValidateSpecSize(encoded)
}

// ownedTooDeep returns an error if an entry of the object's managedFields is nested too deep. Clients send them, and the
// library keeps in them what the kind does not have, and writes them deeper than they came (null as {}). Stored near
// 10,000 levels an object cannot be read again, or not inside of a list. An object with deeper ones from an older version
// can still be changed: otherwise nobody could take its finalizers off.
func ownedTooDeep(entries, previous []metav1.ManagedFieldsEntry) field.ErrorList {
	allowed := maxOwnershipDepth
	for i := range previous {
		allowed = max(allowed, ownershipDepth(previous[i]))
	}

	for i := range entries {
		if ownershipDepth(entries[i]) > allowed {
			return field.ErrorList{field.Invalid(field.NewPath("metadata", "managedFields").Index(i).Child("fieldsV1"), field.OmitValueType{},
				fmt.Sprintf("is nested deeper than %d levels, which no object of this kind needs: remove this entry", maxOwnershipDepth))}
		}
	}

	return nil
}

func ownershipDepth(entry metav1.ManagedFieldsEntry) int {
	if entry.FieldsV1 == nil {
		return 0
	}

	return foreign.DepthOfJSON(entry.FieldsV1.GetRawString())
}

// tooLarge is etcd's error for a large object. Clients see the wrapped status. The library's handlers recognise it by
// its code and text, and try to write the object without managed fields before they give up.
type tooLarge struct{ *apierrors.StatusError }

// Code implements the interface by which the handlers recognise an error of etcd.
func (tooLarge) Code() codes.Code { return codes.InvalidArgument }

// Error returns exactly etcd's text.
func (tooLarge) Error() string { return etcdTooLarge }

// Unwrap returns the status.
func (t tooLarge) Unwrap() error { return t.StatusError }

// explainTooLarge replaces etcd's error for a large object, which clients would take for an error of the server. Only
// an object with very large metadata or status reaches that limit.
func explainTooLarge(err error) error {
	if err == nil || !strings.Contains(err.Error(), etcdTooLarge) {
		return err
	}

	return tooLarge{apierrors.NewRequestEntityTooLargeError(
		"spec, metadata and status together are more than etcd stores in one object (1.5 MiB by default)")}
}
