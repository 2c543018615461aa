package omnihelmrelease

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/limiter"
)

// runner runs actions outside of the reconciler: one at a time for each release, a limited number in all, and fewer in
// one cluster and in one namespace, so that clusters that hang do not occupy all slots. It is a Runnable of the manager, whose stop
// waits until the running actions have ended in order.
type runner struct {
	limiter *limiter.Limiter[string] // by cluster
	// uninstalls has as many slots for uninstalls alone: what is deleted does not wait for what waits for Pods.
	uninstalls *limiter.Limiter[string]
	now        func() time.Time
	// wake is called when the turn of an action has come that waited for it, and after each action.
	wake func(types.NamespacedName)

	mu      sync.Mutex
	jobs    map[types.UID]job
	hung    map[types.NamespacedName]job // actions that did not return
	names   map[types.NamespacedName]types.UID
	stopped bool
	running sync.WaitGroup
	stop    context.CancelFunc
	life    context.Context //nolint:containedctx // the life of the actions, which outlive the runs that begin them
}

func newRunner(limits limiter.Limits[string], now func() time.Time, wake func(types.NamespacedName)) *runner {
	life, stop := context.WithCancel(context.Background())

	return &runner{
		limiter: limiter.New(limits), uninstalls: limiter.New(limits), now: now, wake: wake, jobs: map[types.UID]job{},
		hung: map[types.NamespacedName]job{}, names: map[types.NamespacedName]types.UID{}, life: life, stop: stop,
	}
}

// Start implements manager.Runnable: it blocks until the manager stops, and then until the running actions have ended.
// They end in order and are marked, so that the next controller continues them.
func (r *runner) Start(ctx context.Context) error {
	<-ctx.Done()

	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()

	r.stop()
	r.running.Wait()

	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: only the leader runs actions.
func (r *runner) NeedLeaderElection() bool { return true }

// add adds an action, unless one of the release runs already or the controller stops. The action waits for a free slot.
func (r *runner) add(where releaseKey, added job, run func(context.Context) error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	last := r.jobs[where.uid]
	if r.stopped || last.running() {
		return
	}

	// An uninstall renders nothing, so it ends.
	if _, stuck := r.hung[where.NamespacedName]; stuck && added.action != helm.ActionUninstall {
		return
	}

	if !r.replaceEarlier(where) {
		return
	}

	if last.failed() && last.attempt == added.attempt {
		added.failedInRow, added.firstBegun = last.failedInRow, last.firstBegun
	}

	ctx, cancel := context.WithCancel(r.life)
	added.queued, added.cancel = r.now(), cancel

	// Most find a free slot. What is told of them at once is then true, and is not told twice.
	release, ok := r.slots(added.action).TryAcquire(where.cluster, 1, limiter.Waiter{})
	if ok {
		added.begin(added.queued)
	}

	r.jobs[where.uid], r.names[where.NamespacedName] = added, where.uid

	r.running.Go(func() {
		defer cancel()

		r.end(where, r.inSlot(ctx, where, release, run))
		r.wake(where.NamespacedName)
	})
}

// end notes how an action has ended.
func (r *runner) end(where releaseKey, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	ended := r.jobs[where.uid]
	ended.ended, ended.err = r.now(), err

	switch {
	case err == nil:
		ended.failedInRow = 0
	case ended.withdrawn: // what was withdrawn was no attempt
		if ended.failedInRow == 0 {
			ended.firstBegun = time.Time{}
		}
	case !ended.begun.IsZero(): // what was stopped before was none either
		ended.failedInRow++
	}

	r.jobs[where.uid] = ended
	r.await(where.NamespacedName, ended)
}

// replaceEarlier removes what is kept about an earlier object of the same name. It returns false while an action of
// that object runs, after it has interrupted the action. The caller holds the lock.
func (r *runner) replaceEarlier(where releaseKey) bool {
	earlier, known := r.names[where.NamespacedName]
	if !known || earlier == where.uid {
		return true
	}

	if found := r.jobs[earlier]; found.running() {
		found.cancel()

		return false
	}

	delete(r.jobs, earlier)

	return true
}

// await records an action that did not return, until it does. The caller holds the lock.
func (r *runner) await(name types.NamespacedName, ended job) {
	var failure *helm.Error
	if !errors.As(ended.err, &failure) || failure.Still == nil {
		return
	}

	r.hung[name] = ended

	// The stop of the controller does not wait for it.
	go func() {
		<-failure.Still

		r.mu.Lock()
		delete(r.hung, name)
		r.mu.Unlock()

		r.wake(name)
	}()
}

// stuck returns the action of a release that has ended although Helm did not return: it has no effect any more, but
// uses a processor. ok is false if there is none. It also counts for an object of the same name that was made later.
func (r *runner) stuck(name types.NamespacedName) (found job, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()

	found, ok = r.hung[name]

	return found, ok
}

// inSlot runs an action in the slot that release gives back; nil: in the first of its cluster and of all clusters that it gets.
func (r *runner) inSlot(ctx context.Context, where releaseKey, release func(), run func(context.Context) error) error {
	waits := release == nil
	if waits {
		var err error
		if release, err = r.slots(r.job(where.uid).action).Acquire(ctx, where.cluster, 1); err != nil {
			return &helm.Error{Reason: helm.ReasonInterrupted, Message: "the action was stopped before it was begun"}
		}
	}
	defer release()

	if err := r.hasSlot(where.uid); err != nil {
		return err
	}

	if waits {
		r.wake(where.NamespacedName)
	}

	return run(ctx)
}

// load returns how many actions have a slot, and how many wait for one.
func (r *runner) load() (running int64, waiting int) {
	running, waiting = r.limiter.Load()
	uninstalling, next := r.uninstalls.Load()

	return running + uninstalling, waiting + next
}

// slots returns the limiter of an action.
func (r *runner) slots(action helm.Action) *limiter.Limiter[string] {
	if action == helm.ActionUninstall {
		return r.uninstalls
	}

	return r.limiter
}

// job returns the action of a release: the running one, or the last that has ended; the zero job if this process knows
// of none.
func (r *runner) job(uid types.UID) job {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.jobs[uid]
}

// interrupt ends the running action of a release in order.
func (r *runner) interrupt(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if found := r.jobs[uid]; found.running() {
		found.cancel()
	}
}

// withdraw ends the action of a release as one that nobody wanted, if it has changed nothing yet: it waits for a slot, a
// chart, a worker or memory.
func (r *runner) withdraw(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if found := r.jobs[uid]; found.running() && !found.changing {
		found.withdrawn = true
		r.jobs[uid] = found

		found.cancel()
	}
}

// hasSlot notes that an action has a slot.
func (r *runner) hasSlot(uid types.UID) error {
	return r.proceed(uid, func(j *job) { j.begin(r.now()) })
}

// changes notes that an action is about to change something: from now on it is not withdrawn any more.
func (r *runner) changes(uid types.UID) error {
	return r.proceed(uid, func(j *job) { j.changing = true })
}

// proceed notes how far the action of a release is. The error is that of one that was withdrawn.
func (r *runner) proceed(uid types.UID, note func(*job)) error {
	r.mu.Lock()
	defer r.mu.Unlock()

	found := r.jobs[uid]
	if found.withdrawn {
		return errWithdrawn
	}

	if found.running() {
		note(&found)
		r.jobs[uid] = found
	}

	return nil
}

// asWithdrawn returns what the error of an action means: what ends because it was withdrawn did not fail.
func (r *runner) asWithdrawn(uid types.UID, err error) error {
	if err == nil || !r.job(uid).withdrawn {
		return err
	}

	var failure *helm.Error
	if errors.As(err, &failure) && failure.Still != nil {
		return &helm.Error{Reason: errWithdrawn.Reason, Message: errWithdrawn.Message, Still: failure.Still}
	}

	return errWithdrawn
}

// forget removes what is kept about an object that no longer exists.
func (r *runner) forget(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if uid := r.names[name]; !r.jobs[uid].running() {
		delete(r.jobs, uid)
		delete(r.names, name)
	}
}
