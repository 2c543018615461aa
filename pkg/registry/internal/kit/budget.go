package kit

import (
	"context"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/registry/memory"
)

const (
	// updatesBudget is the memory that all running updates together may take for the objects they change, in bytes.
	// An update that needs more than all of it runs alone, and one user has half of it at most, or one update that is larger.
	updatesBudget = 128 << 20
	// updateWait is how long an update waits for its part of the budget.
	updateWait = 20 * time.Second
	// waitingPerUser is how many updates of one user may wait for their parts at the same time.
	waitingPerUser = 64
)

// updates is the budget of the process: the memory is the process's, too.
//
//nolint:gochecknoglobals // see above
var updates = memory.NewBudget(updatesBudget, updatesBudget, waitingPerUser)

// weighed makes an update wait for its part of the budget. A patch of some bytes makes the server hold the whole
// object several times, so the size of a request says nothing about the memory it takes.
type weighed struct {
	rest.UpdatedObjectInfo

	// stored is whether the object exists. An apply makes one that does not.
	stored   bool
	held     int64
	giveBack func()
}

// UpdatedObject implements rest.UpdatedObjectInfo. After a conflict the store calls it again, and the object may be larger by
// then.
func (w *weighed) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	before, err := meta.Accessor(old)
	w.stored = err == nil && before.GetResourceVersion() != ""

	if err := w.hold(ctx, min(costOf(old), updatesBudget)); err != nil {
		return nil, err
	}

	updated, err := w.UpdatedObjectInfo.UpdatedObject(ctx, old)
	if err != nil {
		return nil, withoutContent(err)
	}

	forgetKind(updated, old)

	if request, ok := genericapirequest.RequestInfoFrom(ctx); ok && request.Verb == "patch" {
		keepVersion(updated, old)
	}

	return updated, nil
}

// keepVersion takes a patch that removes the resourceVersion as one that does not name it, as it is for kinds of Kubernetes' own. kubectl
// apply sends such a patch where its annotation last-applied-configuration has the version of a live object.
func keepVersion(updated, old runtime.Object) {
	after, err := meta.Accessor(updated)
	if err != nil || after.GetResourceVersion() != "" {
		return
	}

	if before, err := meta.Accessor(old); err == nil {
		after.SetResourceVersion(before.GetResourceVersion())
	}
}

// forgetKind removes kind and apiVersion, which some kinds of writes leave in the new object and some in the old one.
// The store compares both as Go values: a difference there would turn a write without changes into a new version.
func forgetKind(objects ...runtime.Object) {
	for _, object := range objects {
		object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
}

// hold waits until the update has its part of the budget. What it had is given back before: two updates that each hold a part
// and wait for more would wait for each other.
func (w *weighed) hold(ctx context.Context, cost int64) error {
	if cost <= w.held {
		return nil
	}

	w.release()

	waiting, cancel := context.WithTimeout(ctx, updateWait)
	defer cancel()

	giveBack, err := updates.Take(waiting, cost)
	if err != nil {
		return apierrors.NewTooManyRequests("too many large objects are being changed: try again", 1)
	}

	w.held, w.giveBack = cost, giveBack

	return nil
}

// release gives back what the update holds.
func (w *weighed) release() {
	if w.giveBack != nil {
		w.giveBack()
	}

	w.held, w.giveBack = 0, nil
}

// costOf estimates the memory that an update of an object takes, in bytes. The rests are those of JSON texts in the object: a short
// patch can have the library read all levels of them.
func costOf(object runtime.Object) int64 {
	size := sizeOf(reflect.ValueOf(object))

	return 1 + size.bytes*memory.Copies + size.values*memory.PerValue + int64(memory.RestPerByteAndLevel*float64(size.rests))
}
