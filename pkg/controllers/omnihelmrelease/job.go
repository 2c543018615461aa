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
	action  helm.Action
	attempt string // digest of everything that the action was begun with
	source  string // of the chart; see sourceKey
	before  int    // failures of the attempt before this action
	row     int    // actions of the attempt in a row that ended with an error, this one included
	begun   time.Time
	started bool      // it has a slot and was begun indeed
	tried   time.Time // when the first of the row was begun indeed
	ended   time.Time // zero while it runs
	err     error

	cancel context.CancelFunc
}

// running reports whether the action has not ended yet.
func (j job) running() bool { return !j.begun.IsZero() && j.ended.IsZero() }

// failed reports whether the action has ended with an error.
func (j job) failed() bool { return !j.ended.IsZero() && j.err != nil }

// failures are those of the attempt after the action: what the cluster or the
// chart refused counts; a stop, an unreachable cluster, a repository, or a controller
// that cannot render, does not.
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

// target is where a release is, for the limit on actions in one cluster.
type target struct {
	types.NamespacedName

	uid     types.UID
	cluster string
}

// job returns the action of a release, running or the last that has ended; the
// zero job if this process knows of none.
func (r *runner) job(uid types.UID) job {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.jobs[uid]
}

// interrupt asks the running action of a release to end in order.
func (r *runner) interrupt(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if found := r.jobs[uid]; found.running() {
		found.cancel()
	}
}

// withdraw takes back the action of a release if it still waits for its turn.
func (r *runner) withdraw(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if found := r.jobs[uid]; found.running() && !found.started {
		found.cancel()
	}
}

// forget drops what is known of an object that is gone.
func (r *runner) forget(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if uid := r.names[name]; !r.jobs[uid].running() {
		delete(r.jobs, uid)
		delete(r.names, name)
	}
}
