package omniconnection

import (
	"context"
	"errors"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
)

// checkPause is how long the answer to a check counts.
const checkPause = 30 * time.Second

// errUndecided says that Omni has not answered a check yet.
var errUndecided = errors.New("Omni has not answered yet")

// check is one question to Omni, whether a session still works.
type check struct {
	session   *session.Session
	requested string        // the on-demand request that it answers
	refusals  uint64        // of the session, before it was asked
	answered  chan struct{} // closed when err and at are set
	err       error
	at        time.Time
}

// counts tells whether the check answers another one as well. A failure counts
// for those who asked for it only, so that the next run asks again.
func (c *check) counts(wanted *check, now time.Time) bool {
	if c == nil || c.session != wanted.session || c.requested != wanted.requested || c.refusals != wanted.refusals {
		return false
	}

	select {
	case <-c.answered:
		return now.Sub(c.at) < checkPause
	default:
		return true
	}
}

// check asks Omni whether the session still works, unless it did so a moment
// ago: a fleet of clusters that come and go wakes its connection often. A
// request by annotation is always answered with a new check, and what was
// answered before Omni refused the key to somebody else does not count.
//
// It waits no longer than ctx, and is errUndecided then: an Omni that hangs must
// not keep the workers that other connections need. The question goes on, and
// its answer wakes the connection.
func (r *reconciler) check(ctx context.Context, connection *v1alpha1.OmniConnection, lease *session.Lease) error {
	if lease.Client() == nil {
		return nil
	}

	uid := connection.UID
	wanted := &check{
		session:   lease.Session,
		requested: connection.Annotations[v1alpha1.AnnotationReconcileRequestedAt] + " " + connection.Annotations[v1alpha1.AnnotationFluxRequestedAt],
		refusals:  lease.Client().Refusals(),
		answered:  make(chan struct{}),
	}

	r.mu.Lock()

	current := r.checks[uid]
	if !current.counts(wanted, r.options.Now()) {
		current = wanted
		r.checks[uid] = current

		go r.ask(context.WithoutCancel(ctx), current, string(uid))
	}

	r.mu.Unlock()

	select {
	case <-current.answered:
	case <-ctx.Done():
		return errUndecided
	}

	if current.err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()

		if r.checks[uid] == current {
			delete(r.checks, uid)
		}
	}

	return current.err
}

// ask asks, and wakes the connection if nobody may be waiting any more. It is
// bounded by omni.CheckTimeout; a session that is closed meanwhile ends it.
func (r *reconciler) ask(ctx context.Context, asked *check, uid string) {
	started := time.Now()
	asked.err = asked.session.Client().Check(ctx)
	asked.at = r.options.Now()
	close(asked.answered)

	if time.Since(started) > reachTimeout/2 && r.options.HealthChanged != nil {
		r.options.HealthChanged.Fire(uid)
	}
}
