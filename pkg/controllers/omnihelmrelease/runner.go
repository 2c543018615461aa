package omnihelmrelease

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
)

// runner runs actions outside of the reconciler: one at a time for each release, a limited number in all, and fewer in
// one cluster and in one namespace, so that clusters that hang do not occupy all slots. It is a Runnable of the manager, whose stop
// waits until the running actions have ended in order.
type runner struct {
	limiter *limiter.Limiter[string] // by cluster
	// uninstalls has as many slots for uninstalls alone: what is deleted does not wait for what waits for Pods.
	uninstalls *limiter.Limiter[string]
	now        func() time.Time
	// wake is called when the turn of a release has come that waited for it, and after each action.
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

// begin begins an action in a free slot, unless one of the release runs already or the controller stops. If no slot is free it returns
// false: the release has its place among those that wait, and is woken in its turn.
func (r *runner) begin(where releaseKey, added job, run func(context.Context) error) (ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()

	last := r.jobs[where.uid]
	if r.stopped || last.running() {
		return true
	}

	// An uninstall renders nothing, so it ends.
	if _, stuck := r.hung[where.NamespacedName]; stuck && added.action != helm.ActionUninstall {
		return true
	}

	if !r.replaceEarlier(where) {
		return true
	}

	release, ok := r.slots(added.action).Claim(where.cluster, limiter.Waiter{Name: where.waiter(), Wake: func() { r.wake(where.NamespacedName) }})
	if !ok {
		return false
	}

	ctx, cancel := context.WithCancel(r.life)
	added.begun, added.cancel = r.now(), cancel
	added.firstBegun = added.begun

	if last.failed() && last.attempt == added.attempt {
		added.failedInRow, added.firstBegun = last.failedInRow, last.firstBegun
	}

	r.jobs[where.uid], r.names[where.NamespacedName] = added, where.uid

	r.running.Go(func() {
		defer cancel()

		err := run(ctx)

		release()
		r.end(where, err)
		r.wake(where.NamespacedName)
	})

	return true
}

// exit ends the wait of a release for a slot.
func (r *runner) exit(where releaseKey) {
	r.limiter.Exit(where.waiter())
	r.uninstalls.Exit(where.waiter())
}

// end notes how an action has ended.
func (r *runner) end(where releaseKey, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	ended := r.jobs[where.uid]
	ended.ended, ended.err = r.now(), err

	if ended.failedInRow++; err == nil {
		ended.failedInRow = 0
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

// changes notes that the action of a release is about to change something.
func (r *runner) changes(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if found := r.jobs[uid]; found.running() {
		found.changing = true
		r.jobs[uid] = found
	}
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

// actionCorrect applies objects again that differ from the deployed release.
const actionCorrect helm.Action = "correct"

// job is one action on one release, running or ended.
type job struct {
	action      helm.Action
	attempt     string // digest of everything that the action was begun with
	source      string // of the chart; see sourceKey
	kubeconfig  string // a digest of the one that it uses
	before      int    // failures of the attempt before this action
	failedInRow int    // actions of the attempt in a row that ended with an error, this one included
	begun       time.Time
	changing    bool      // it has changed something, or is about to
	firstBegun  time.Time // when the first of them was begun
	ended       time.Time // zero while it runs
	err         error

	cancel context.CancelFunc
}

// running reports whether the action has not ended yet.
func (j job) running() bool { return !j.begun.IsZero() && j.ended.IsZero() }

// failed reports whether the action has ended with an error.
func (j job) failed() bool { return !j.ended.IsZero() && j.err != nil }

// pauses reports whether an action that failed waits before it is tried again. One that was interrupted once begins again
// at once. If it happens twice in a row, something interrupts it each time. spec.retries does not bound
// interruptions.
func (j job) pauses() bool { return j.failed() && (j.failedInRow > 1 || !interrupted(j.err)) }

// failures returns the failures of the attempt after the action. An action that the cluster or the chart refused
// counts; one that failed because of a stop, an unreachable cluster, a repository, or a controller that cannot render
// does not.
func (j job) failures() int {
	puts := j.action == helm.ActionInstall || j.action == helm.ActionUpgrade
	if j.err == nil && puts {
		return 0
	}

	var failure *helm.Error
	if (puts || j.action == helm.ActionRollback) && errors.As(j.err, &failure) {
		switch failure.Reason {
		case helm.ReasonInterrupted, helm.ReasonUnreachable, helm.ReasonUnavailable:
		default:
			return j.before + 1
		}
	}

	return j.before
}

// releaseKey names a release, with its cluster, for the limit of actions in one cluster.
type releaseKey struct {
	types.NamespacedName

	uid     types.UID
	cluster string
}

// waiter names a release among those that wait for a slot of its cluster.
func (k releaseKey) waiter() string { return k.cluster + " " + string(k.uid) }
