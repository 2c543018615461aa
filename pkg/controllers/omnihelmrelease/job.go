package omnihelmrelease

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
)

// actionCorrect applies objects again that differ from the deployed release.
const actionCorrect helm.Action = "correct"

// job is one action on one release, running or ended.
type job struct {
	action      helm.Action
	attempt     string    // digest of everything that the action was begun with
	source      string    // of the chart; see sourceKey
	inputs      string    // what it was decided from; see inputs
	generation  int64     // of the object
	before      int       // failures of the attempt before this action
	failedInRow int       // actions of the attempt in a row that ended with an error, this one included
	begun       time.Time // when it was decided; it may wait for its turn then
	started     time.Time // when it got a slot and was begun indeed; zero while it waits for one
	changing    bool      // it has changed something, or is about to
	withdrawn   bool      // it was taken back before that
	tried       time.Time // when the first of them was begun indeed
	ended       time.Time // zero while it runs
	err         error

	cancel context.CancelFunc
}

// running reports whether the action has not ended yet.
func (j job) running() bool { return !j.begun.IsZero() && j.ended.IsZero() }

// failed reports whether the action has ended with an error.
func (j job) failed() bool { return !j.ended.IsZero() && j.err != nil }

// pauses reports whether an action that failed waits before it is tried again. One that was interrupted once begins again
// at once. If it happens twice in a row, something interrupts it each time.
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

// target is the place of a release, for the limit of actions in one cluster.
type target struct {
	types.NamespacedName

	uid     types.UID
	cluster string
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

// withdraw takes the action of a release back if it has changed nothing yet: it waits for a slot, a chart, a worker or
// memory.
func (r *runner) withdraw(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if found := r.jobs[uid]; found.running() && !found.changing {
		found.withdrawn = true
		r.jobs[uid] = found

		found.cancel()
	}
}

// start notes that an action has a slot.
func (r *runner) start(uid types.UID) error {
	return r.proceed(uid, func(j *job) { j.start(r.now()) })
}

// start notes that the action has a slot, if that is news.
func (j *job) start(now time.Time) {
	if j.started.IsZero() {
		j.started = now
	}

	if j.tried.IsZero() {
		j.tried = now
	}
}

// changes notes that an action is about to change something: from now on it is not taken back any more.
func (r *runner) changes(uid types.UID) error {
	return r.proceed(uid, func(j *job) { j.changing = true })
}

// proceed notes how far the action of a release is. The error is that of one that was taken back.
func (r *runner) proceed(uid types.UID, note func(*job)) error {
	r.mu.Lock()
	defer r.mu.Unlock()

	found := r.jobs[uid]
	if found.withdrawn {
		return errReplaced
	}

	if found.running() {
		note(&found)
		r.jobs[uid] = found
	}

	return nil
}

// asTakenBack returns what the error of an action means: what ends because it was taken back did not fail.
func (r *runner) asTakenBack(uid types.UID, err error) error {
	if err == nil || !r.job(uid).withdrawn {
		return err
	}

	var failure *helm.Error
	if errors.As(err, &failure) && failure.Still != nil {
		return &helm.Error{Reason: errReplaced.Reason, Message: errReplaced.Message, Still: failure.Still}
	}

	return errReplaced
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
