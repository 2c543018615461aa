package kit

import (
	"bytes"
	"context"
	"reflect"
	"time"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
)

const (
	// What an update of a stored object takes in memory: its text some times over, and for each value its places in the
	// objects before and after, and in what field ownership is computed from.
	copiesOfObject = 6
	bytesPerValue  = 1400

	// updatesBudget is what the updates under way may take together for the objects that they change, in bytes. One that
	// takes more has it for itself.
	updatesBudget = 128 << 20
	// updateWait is how long an update waits for its part of the budget.
	updateWait = 20 * time.Second
)

// updates is the budget of the process: the memory is the process's, too.
//
//nolint:gochecknoglobals // see above
var updates = semaphore.NewWeighted(updatesBudget)

// weighed is an update that waits for its part of the budget. A patch of some bytes makes the server hold the whole object
// several times, so what requests send says nothing about what they take.
type weighed struct {
	rest.UpdatedObjectInfo

	held int64
}

// UpdatedObject implements rest.UpdatedObjectInfo. The store calls it again after a conflict, with an object of much the same
// size.
func (w *weighed) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	if w.held == 0 {
		waiting, cancel := context.WithTimeout(ctx, updateWait)
		defer cancel()

		cost := min(costOf(old), updatesBudget)
		if err := updates.Acquire(waiting, cost); err != nil {
			return nil, apierrors.NewTooManyRequests("too many large objects are being changed: try again", 1)
		}

		w.held = cost
	}

	updated, err := w.UpdatedObjectInfo.UpdatedObject(ctx, old)
	if err != nil {
		return nil, err // the library knows its errors
	}

	forgetKind(updated, old)

	return updated, nil
}

// forgetKind takes kind and apiVersion away, which some ways of writing leave in the new object and some in the old one.
// The store compares both as Go values: a difference there would make a new version of a write that changes nothing.
func forgetKind(objects ...runtime.Object) {
	for _, object := range objects {
		object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
}

// release gives back what the update holds.
func (w *weighed) release() { updates.Release(w.held) }

// costOf is what an update of an object takes, in bytes, by an estimate.
func costOf(object runtime.Object) int64 {
	size := sizeOf(reflect.ValueOf(object))

	return 1 + size.bytes*copiesOfObject + size.values*bytesPerValue
}

// size is how much there is in a value of any type.
type size struct{ values, bytes int64 }

func (s size) and(other size) size {
	return size{values: s.values + other.values, bytes: s.bytes + other.bytes}
}

// sizeOf counts without allocating. It does not go into times, which hold tables of their zone.
func sizeOf(value reflect.Value) size {
	total := size{values: 1}

	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		if value.IsNil() {
			return size{}
		}

		return sizeOf(value.Elem())
	case reflect.Struct:
		if value.Type() == reflect.TypeFor[metav1.Time]() {
			return total
		}

		for i := range value.NumField() {
			total = total.and(sizeOf(value.Field(i)))
		}
	case reflect.Map:
		for entries := value.MapRange(); entries.Next(); {
			total = total.and(sizeOf(entries.Key())).and(sizeOf(entries.Value()))
		}
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			return sizeOfText(value.Bytes())
		}

		for i := range value.Len() {
			total = total.and(sizeOf(value.Index(i)))
		}
	case reflect.String:
		total.bytes = int64(value.Len())
	default:
	}

	return total
}

// sizeOfText counts the values of a JSON text: each but the first has one of these characters before it.
func sizeOfText(text []byte) size {
	total := size{values: 1, bytes: int64(len(text))}
	for _, indicator := range []byte(",:[{") {
		total.values += int64(bytes.Count(text, []byte{indicator}))
	}

	return total
}
