// Package kit serves one kind of the API from one Descriptor.
//
// A Descriptor holds everything that is special about a kind. The kit turns it into the strategies, the store, the
// status and scale subresources and the printed table that the generic API server needs. Rules for all kinds are
// here, once: when the generation increases, which status a new object has, which part of an object each subresource
// may write, who may delete.
//
// The descriptors in pkg/registry/omni/<kind> use the kit; pkg/registry/internal/kittest tests a descriptor through
// it.
package kit

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Category groups all kinds: `kubectl get omni` lists them.
const Category = "omni"

// Object is what the kit needs of a kind.
type Object interface {
	runtime.Object
	metav1.Object

	// GetReconcileStatus returns the part of the status that all kinds share.
	GetReconcileStatus() *v1alpha1.ReconcileStatus
}

// Descriptor holds everything that is special about one kind. T is the pointer to its Go type.
type Descriptor[T Object] struct {
	// Kind, Plural, Singular and ShortName are the kind's names, as discovery shows them.
	Kind, Plural, Singular, ShortName string

	// New and NewList make an empty object and an empty list.
	New     func() T
	NewList func() runtime.Object

	// Spec and Status are the two halves of the object. A write to the main resource never changes
	// the status, a write to /status changes nothing else.
	Spec, Status Part[T]

	// Validation holds the rules on one object.
	Validation Validation[T]

	// Warnings are advice on a valid object, each "path: message". They are given at create, and at an
	// update that changes the spec. Optional.
	Warnings func(T) []string

	// UpdateWarnings are warnings about what an update takes away or loses, each "path: message". They are given at an update that
	// changes the spec, before Warnings, and at a client-side apply of another manifest. Optional.
	UpdateWarnings func(obj, old T) []string

	// Record is called for every write of the main resource, with the user, after the status was reset to the stored
	// one (old is the zero T for a new object). It may write into the status what only the server knows. Optional.
	Record func(obj, old T, user string)

	// Kept restores, in a write of the status, the part that only Record writes. Optional; goes with Record.
	Kept func(obj, old T)

	// DeleteGuard refuses the deletion of an object that is not being deleted yet: single, dry-run, and as part of a
	// collection. Its error is the answer to the client, so it must be one of the API. Optional.
	DeleteGuard func(context.Context, T) error

	// Deletion says what deleting the object does. It is told as a warning, and what does something is not deleted with the
	// propagation policy Orphan. Optional.
	Deletion func(T) Deletion

	// Selectable is the one field of the spec that field selectors may name. Optional.
	Selectable *SelectableField[T]

	// Suspended reports whether the object is told to do nothing, for the column SUSPENDED. Nil: the kind cannot be suspended.
	Suspended func(T) bool

	// Columns are those of the kind alone: they are printed behind SUSPENDED, READY and STATUS, and before MESSAGE and AGE.
	Columns []Column[T]

	// Scale makes the scale subresource. Optional.
	Scale *Scale[T]
}

// Validation holds the rules on one object: pure functions, no I/O.
type Validation[T Object] struct {
	// Create checks a new object.
	Create func(obj T) field.ErrorList
	// Update checks a change of spec or metadata, immutability included.
	Update func(obj, old T) field.ErrorList
	// StatusUpdate checks a change of the status. Nil: by the rules for every status.
	StatusUpdate func(obj, old T) field.ErrorList
}

// SelectableField is a field that field selectors may name, indexed in the watch cache.
type SelectableField[T Object] struct {
	// Label is the selector's name of the field, such as "spec.clusterRef.name".
	Label string
	// Value reads the field.
	Value func(T) string
}

// ByCluster lets field selectors name the OmniCluster that an object refers to.
func ByCluster[T Object]() *SelectableField[T] {
	return &SelectableField[T]{Label: v1alpha1.ClusterRefField, Value: func(obj T) string { return v1alpha1.ClusterRefOf(obj) }}
}

// Part is one half of an object, spec or status: how to copy it, compare it, and encode it as it is stored.
type Part[T any] struct {
	copy   func(dst, src T)
	equal  func(a, b T) bool
	encode func(T) ([]byte, error)
}

// Resource is the kind's plural name with its group.
func (d *Descriptor[T]) Resource() schema.GroupResource { return v1alpha1.Resource(d.Plural) }

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

// pendingMessage is the message of a new object's condition until a controller has processed the object.
const pendingMessage = "no controller has looked at this object yet"

// setInitialStatus writes the status of a new object, so that no reader takes the object for a finished one: tools
// that know kstatus wait while Reconciling is True or observedGeneration lags behind. Other conditions stay.
func setInitialStatus(status *v1alpha1.ReconcileStatus, now metav1.Time) {
	status.ObservedGeneration = -1

	for _, first := range []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown},
		{Type: v1alpha1.ConditionReconciling, Status: metav1.ConditionTrue},
	} {
		first.Reason, first.Message, first.LastTransitionTime = v1alpha1.ReasonPending, pendingMessage, now
		meta.SetStatusCondition(&status.Conditions, first)
	}
}
