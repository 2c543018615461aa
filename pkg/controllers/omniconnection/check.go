package omniconnection

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/asynccache"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

const (
	// checkPause is how long the result of a check is valid.
	checkPause = 30 * time.Second
	// checkTimeout ends a check that did not end after session.CheckTimeout.
	checkTimeout = 2 * session.CheckTimeout
)

// errUndecided means that Omni has not answered a check yet.
var errUndecided = errors.New("Omni has not answered yet")

// check has what the result of a check depends on.
type check struct {
	session   *session.Session
	requested string // the on-demand request that it answers
	refusals  uint64 // of the session, before it was asked
}

// checks keeps the last check of each connection.
type checks = asynccache.Cache[types.UID, check, struct{}]

func newChecks(options Options) *checks {
	return asynccache.New(asynccache.Options[types.UID, check, struct{}]{
		AnswerTimeout: reachTimeout, QuestionTimeout: checkTimeout, Now: options.Now,
		Keep: func(asynccache.Question[check], asynccache.Answer[struct{}]) time.Duration { return checkPause },
		Wake: func(uid types.UID) {
			if options.HealthChanged != nil {
				options.HealthChanged.Fire(string(uid))
			}
		},
	})
}

// check checks whether the session still works. It reuses a recent result, because clusters that come and go trigger
// their connection often. A request by annotation always makes a new check, and a result from before Omni refused the
// key for another call is not used.
//
// It waits no longer than ctx and then returns errUndecided: an Omni that does not answer must not occupy the workers
// that other connections need. The check goes on, and its end triggers the connection.
func (r *reconciler) check(ctx context.Context, connection *v1alpha1.OmniConnection, lease *session.Lease) error {
	session := lease.Session
	if session.Client() == nil {
		return nil
	}

	return r.ask(ctx, connection.UID, check{
		session:   session,
		requested: loop.Requests(connection),
		refusals:  session.Client().Refusals(),
	}, session.Client().Check)
}

// ask runs a check, or returns the result of the same check. Only the callers that waited for a failed check get its
// error; the next run checks again.
func (r *reconciler) ask(ctx context.Context, uid types.UID, wanted check, do func(context.Context) error) error {
	answer, ok := r.checks.Ask(ctx, uid, asynccache.Question[check]{Key: wanted, Group: string(uid)}, func(ctx context.Context, _ asynccache.Question[check]) (struct{}, error) {
		return struct{}{}, do(ctx)
	})
	if !ok {
		return errUndecided
	}

	if answer.Err != nil {
		r.checks.Forget(uid)
	}

	return answer.Err
}
