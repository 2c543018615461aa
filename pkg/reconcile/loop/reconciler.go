// Package loop is the one reconcile loop of all controllers.
//
// A controller describes its kind as a Kind value: its phases in order, how to make a scope, how to fill the status
// from it. The loop does the rest in the same way for every kind:
//
//	get -> finalizer -> phases in order -> status from the scope
//	-> one status patch, if something changed -> event, if Ready changed
//
// Phases never write conditions: each owns one condition type, and its Outcome has what the loop writes there. No phase
// reads a condition that was written here; a run that finds nothing changed writes nothing.
//
// Conditions follow kstatus: Ready always exists, Reconciling and Stalled exist only while they are true, and the
// conditions of the phases after one that does not continue are Unknown, reason Blocked.
package loop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

const (
	// conflictPause is how long the loop waits after a conflict on the object, or on one that a phase writes; the
	// change itself usually triggers the object earlier.
	conflictPause = 200 * time.Millisecond
	// quietConflicts is how many conflicts since the last success are tried again without being shown. More are no
	// coincidence, and are shown like other failures.
	quietConflicts = 10
)

// errNothingPersisted is the error of a phase that returned Persist without a change of the status: it would wait for
// ever.
var errNothingPersisted = errors.New("a phase asked to store a status that did not change")

// Reconciler runs one kind. It is safe for concurrent use.
type Reconciler[O Object, S any] struct {
	kind     Kind[O, S]
	settings Settings
	failures *Failures
	written  *written
}

// New returns the reconciler of a kind.
func New[O Object, S any](kind Kind[O, S], settings Settings) *Reconciler[O, S] {
	if settings.Timeout <= 0 {
		settings.Timeout = DefaultTimeout
	}

	if settings.Jitter == nil {
		settings.Jitter = func(interval time.Duration) time.Duration { return interval - rand.N(interval/10+1) }
	}

	return &Reconciler[O, S]{kind: kind, settings: settings, failures: newFailures(), written: newWritten()}
}

// Failures returns the rate limiter of a controller that does not let events cut the pauses after errors short.
func (r *Reconciler[O, S]) Failures() *Failures { return r.failures }

// Reconcile implements reconcile.Reconciler. It returns an error only if the run has to be tried again with growing
// pauses.
func (r *Reconciler[O, S]) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := r.kind.New()

	err := r.settings.Client.Get(ctx, request.NamespacedName, object)
	if apierrors.IsNotFound(err) {
		r.failures.succeeded(request)
		r.written.forget(request)

		if r.kind.Gone != nil {
			r.kind.Gone(request.NamespacedName)
		}

		return reconcile.Result{}, nil
	}

	if err != nil {
		return reconcile.Result{}, fmt.Errorf("read the object: %w", err)
	}

	what := contentOf(object)
	if pause := r.failures.hold(request, what); pause > 0 {
		return reconcile.Result{RequeueAfter: pause}, nil
	}

	// A run from an older object would only have a conflict.
	if pause := r.written.awaited(request, object); pause > 0 {
		return reconcile.Result{RequeueAfter: pause}, nil
	}

	quiet := r.failures.conflicts(request) < quietConflicts
	result, known, err := r.reconcile(ctx, object, quiet)

	switch {
	case quiet && isConflict(err):
		r.failures.conflicted(request)

		return reconcile.Result{RequeueAfter: conflictPause}, nil
	case err != nil:
		r.failures.failed(request, what)
	case known:
		r.failures.succeeded(request)
	}

	return result, err
}

// contentOf returns a key of everything that users set in an object, without its status.
func contentOf(object client.Object) string {
	return fmt.Sprintf("%s %d %t %s", object.GetUID(), object.GetGeneration(), object.GetDeletionTimestamp().IsZero(), RequestedAt(object))
}

// isConflict reports whether somebody else changed an object since it was read, so that the next run sees more.
func isConflict(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// reconcile carries out one run. known is false if the run was postponed or overtaken: then it does not end a row of
// failures. A quiet run does not show a conflict of a phase, which goes away by itself.
func (r *Reconciler[O, S]) reconcile(ctx context.Context, object O, quiet bool) (result reconcile.Result, known bool, err error) {
	deleting := !object.GetDeletionTimestamp().IsZero()

	if deleting && (r.kind.Finalizer == "" || !controllerutil.ContainsFinalizer(object, r.kind.Finalizer)) {
		return reconcile.Result{}, true, nil
	}

	if !deleting {
		if err := r.addFinalizer(ctx, object); err != nil {
			return reconcile.Result{}, true, err
		}
	}

	before, ok := object.DeepCopyObject().(O)
	if !ok {
		return reconcile.Result{}, true, errors.New("copy the object: the copy has another type")
	}

	run := r.run(ctx, object, deleting)

	if quiet && isConflict(run.err) {
		return reconcile.Result{}, true, run.err
	}

	// A process that stops interrupts its phases; that is no failure to show.
	if run.err != nil && ctx.Err() != nil {
		return reconcile.Result{}, true, errors.Join(run.err, r.interrupted(ctx, before, object))
	}

	if run.last.Postpones() {
		return reconcile.Result{RequeueAfter: r.pause(object, run.last)}, false, nil
	}

	if deleting && run.last.Continues() && run.err == nil {
		writing, cancel := writingContext(ctx)
		defer cancel()

		return reconcile.Result{}, true, r.removeFinalizer(writing, object)
	}

	if ctx.Err() != nil && !run.last.Continues() && !run.last.Persists() {
		return reconcile.Result{}, true, r.interrupted(ctx, before, object)
	}

	return r.finish(ctx, before, object, run)
}

// interrupted writes the status of a run during which the process was told to stop, and returns an error. What the run has done is
// written; its conditions are not, because the calls that the stop ended look as if the other side had failed.
func (r *Reconciler[O, S]) interrupted(ctx context.Context, before, object O) error {
	was, is := before.GetReconcileStatus(), object.GetReconcileStatus()
	is.ObservedGeneration, is.LastHandledReconcileAt = was.ObservedGeneration, was.LastHandledReconcileAt
	*is.ConditionsPtr() = was.DeepCopy().Conditions

	writing, cancel := writingContext(ctx)
	defer cancel()

	return errors.Join(ctx.Err(), r.writeStatus(writing, before, object))
}

// finish writes the status that a run made, and says when the next run is due. As reconcile does, it also returns whether the
// object is known now.
func (r *Reconciler[O, S]) finish(ctx context.Context, before, object O, run runResult) (result reconcile.Result, known bool, err error) {
	writing, cancel := writingContext(ctx)
	defer cancel()

	if err := r.writeStatus(writing, before, object); err != nil {
		return reconcile.Result{}, true, errors.Join(run.err, err)
	}

	if run.err != nil {
		return reconcile.Result{}, true, run.err
	}

	if run.last.Persists() {
		if apiequality.Semantic.DeepEqual(before, object) {
			return reconcile.Result{}, true, errNothingPersisted
		}

		return reconcile.Result{RequeueAfter: writtenPoll}, true, nil
	}

	if run.last.IsOvertaken() {
		request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}

		return reconcile.Result{RequeueAfter: r.failures.overtaken(request, contentOf(object))}, false, nil
	}

	return reconcile.Result{RequeueAfter: r.pause(object, run.last)}, true, nil
}

// writingContext is for what a run has to write in the end, also when the process stops.
func writingContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
}

// addFinalizer makes sure that the finalizer exists before any phase does something that it would have to clean up.
func (r *Reconciler[O, S]) addFinalizer(ctx context.Context, object O) error {
	if r.kind.Finalizer == "" || controllerutil.ContainsFinalizer(object, r.kind.Finalizer) {
		return nil
	}

	base := object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the type of its original
	controllerutil.AddFinalizer(object, r.kind.Finalizer)

	if err := r.settings.Client.Patch(ctx, object, locked(base)); err != nil {
		return fmt.Errorf("add the finalizer: %w", err)
	}

	r.written.note(object)

	return nil
}

func (r *Reconciler[O, S]) removeFinalizer(ctx context.Context, object O) error {
	base := object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the type of its original
	controllerutil.RemoveFinalizer(object, r.kind.Finalizer)

	if err := r.settings.Client.Patch(ctx, object, locked(base)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer: %w", err)
	}

	return nil
}

// writeStatus patches the status if it differs, and sends the events about what is new.
func (r *Reconciler[O, S]) writeStatus(ctx context.Context, before, object O) error {
	makePrintable(object)

	if !apiequality.Semantic.DeepEqual(before, object) {
		err := r.settings.Client.Status().Patch(ctx, object, locked(before))
		if apierrors.IsNotFound(err) {
			return nil
		}

		if err != nil {
			return fmt.Errorf("write the status: %w", err)
		}

		r.written.note(object)
		r.tell(before, object)
	}

	if r.kind.Reported != nil {
		r.kind.Reported(object)
	}

	return nil
}

// makePrintable has the whole status show what it says: names, versions and stages in it are those of other servers.
func makePrintable(object client.Object) {
	status := reflect.ValueOf(object).Elem().FieldByName("Status")
	if redact.IsPrintable(status.Interface()) {
		return
	}

	// Parts of the status may be those of a cache.
	copied := reflect.ValueOf(object.DeepCopyObject()).Elem().FieldByName("Status")
	redact.MakePrintable(copied.Addr().Interface())
	status.Set(copied)
}

// tell sends the events about what is new in a status that was written. If the answer to the write was lost, nobody sends them: the
// next run finds the status as it makes it.
func (r *Reconciler[O, S]) tell(before, object O) {
	if changed := readyChanged(before.GetReconcileStatus(), object.GetReconcileStatus()); changed != nil {
		r.announce(object, *changed)
	}

	if r.kind.StatusWritten != nil {
		r.kind.StatusWritten(before, object)
	}
}

// locked returns a merge patch that fails with a conflict if the object changed since it was read: lists are replaced
// as a whole, and a decision from an old object must not overwrite a newer one.
func locked(base client.Object) client.Patch {
	return client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
}

// pause returns when the object is reconciled again without a trigger.
func (r *Reconciler[O, S]) pause(object O, last Outcome) time.Duration {
	pause := r.settings.Jitter(r.kind.Interval(object))

	if after := last.After(); after > 0 {
		pause = min(pause, after)
	}

	if r.kind.Due == nil {
		return pause
	}

	if due := r.kind.Due(object); due > 0 {
		pause = min(pause, due)
	}

	return pause
}

const (
	// writtenPoll is the first pause before the cache is checked for our own last write: its event arrives within
	// milliseconds. On a busy machine it takes longer, and checks cost time, too: the pauses double, up to longestPoll.
	writtenPoll = 5 * time.Millisecond
	longestPoll = time.Second
	// writtenTimeout is how long the loop waits for it. A run that begins without it does no harm: its write has a
	// conflict, or it returns Persist for the same status again.
	writtenTimeout = 10 * time.Second
)

// written records our own writes that the cache does not show yet.
type written struct {
	now func() time.Time

	mu     sync.Mutex
	writes map[reconcile.Request]write
}

// write is the version of an object after a write.
type write struct {
	uid     types.UID
	version string
	at      time.Time
}

func newWritten() *written {
	return &written{now: time.Now, writes: map[reconcile.Request]write{}}
}

// note records a write. The object has the version that the write made.
func (w *written) note(object client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()

	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
	w.writes[request] = write{uid: object.GetUID(), version: object.GetResourceVersion(), at: w.now()}
}

// awaited returns when to look at an object from the cache again that is older than our last write to it. 0: it is not.
func (w *written) awaited(request reconcile.Request, cached client.Object) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()

	last, found := w.writes[request]
	if !found {
		return 0
	}

	// Versions that cannot be compared are ignored: the run decides by itself.
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), last.version)
	if age := w.now().Sub(last.at); err == nil && order < 0 && cached.GetUID() == last.uid && age < writtenTimeout {
		return min(max(writtenPoll, age), longestPoll)
	}

	delete(w.writes, request)

	return 0
}

// forget removes what is kept about an object that no longer exists.
func (w *written) forget(request reconcile.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()

	delete(w.writes, request)
}
